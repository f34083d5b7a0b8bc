"""Returns drives to their state before first use: Format or Sanitize (NVMe), secure erase (ATA), or zeroes.

Every purge requires a ``HeldDrives`` and checks the drive immediately before. An erase that cannot be interrupted runs
under the keeper of ``rig.machine`` until it ends. Entry: ``purge.purge``.
"""
