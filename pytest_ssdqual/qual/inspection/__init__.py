"""Receiving inspection: what drives report about themselves, compared with the order and with what new drives report.

Pure; reads no drive. ``rig.health.inspection`` fills ``InspectionRecord``, ``limits.InspectionTable`` is the table of
the spec, ``checks`` compares one drive with it, ``verdict.InspectionVerdict`` is the result for all drives.
"""
