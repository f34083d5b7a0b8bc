"""Resume of a run that ended early: what its folder proves about measurements and about the array on its drives.

May not trust a record without checking it against fio's output and the digests. In doubt a measurement is repeated, and
an array is built again. Main types: `resume.Past`, `rebuild_measurements.Recollection`.
"""
