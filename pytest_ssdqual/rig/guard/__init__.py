"""Decides whether a drive may be destroyed, and holds it for this run.

A doubt is a reason to refuse; every reason for every drive is reported before anything is written. Content may be
destroyed only if the user consented, or if it is proven to come from an earlier run, by an array's UUID that a journal
records or by a label on the drive. The only write of this package is that label, on drives that already passed. Main
type: ``held_drives.HeldDrives``, which is required by everything that writes.
"""
