"""Linux md arrays: create, assemble, degrade, rebuild, stop; and the regions of their devices that tests write.

Members are bound to the checked drives (``rig.drives.fencing``) and rechecked before each destructive step. Nothing
here measures. Main type: ``mdadm.Array``.
"""
