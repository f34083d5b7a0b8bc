"""Drives of the machine under test: identity, uses, those that failed, and their write caches.

Nothing here writes to a drive. A drive is identified by WWN or serial number, never by its /dev name;
``fencing`` binds a command to the open, checked drive. Main types: ``topology.Topology`` and ``topology.Drive``.
"""
