"""Measurements: counts and latency histograms of fio processes, and the environment around them; values only.

May not judge, and may not say whether a measurement is valid (`validity`) or steady (`stats`). A value that could not
be read is None, never a default that looks good. Main types: `Run` (one fio process),
`Measured` (its repeats), and the base `Judgeable` of all that a verdict can be about.
"""
