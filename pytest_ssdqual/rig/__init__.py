"""Every effect on a machine: commands, drives, arrays, fio; nothing here judges a measurement.

A module of this package may use ``qual`` and nothing above (import-linter checks it). Every command goes through
``machine.machine.Machine``; whatever writes to a drive needs a ``guard.held_drives.HeldDrives``.
"""
