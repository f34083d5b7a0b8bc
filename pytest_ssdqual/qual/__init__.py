"""Arithmetic of qualification: values in, values out.

No module here reads a file or a clock, starts a process or imports from `rig`, `report`, `live`, `lab` or `plugin`. The
main types, in the order of one measurement: `Workload`, `Geometry`, `Run`, `Estimate`, `Limit`, `Verdict`.
"""
