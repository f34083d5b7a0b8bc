"""Specs for people: the explanation of a spec file, and a spec written from the run of a reference drive.

May not judge. `explain` gives the lines of ``ssdqual spec --check``, `from_run` the text of ``ssdqual spec --from``.
"""
