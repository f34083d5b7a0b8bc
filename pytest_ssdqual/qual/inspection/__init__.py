"""Receiving inspection: what drives report about themselves, compared with the order and with what new drives report.

Pure; reads no drive. ``rig.health.inspection`` fills ``InspectionRecord``, ``limits.InspectionTable`` is the table of
the spec, ``checks`` compares drives with it, and ``InspectionVerdict`` is the result of one check for all drives.
"""
