"""RAID levels: geometries, the cost of host I/O at the members, and the scaling of IOPS over widths.

May not touch a machine. The cost model is Linux md's (drivers/md/raid5.c), verified by counting I/Os at members. Main
type: `Geometry`.
"""
