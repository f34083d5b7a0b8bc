"""The fixtures ``ssd_explore`` and ``ssd_integrity``: searches for broken promises and for lost data.

hypothesis draws workloads near a plain one, or histories of array steps. The rules of both searches are in ``qual``;
this package runs them on the rig and records them. hypothesis is optional, so only functions import it. The main types
are ``explore.Explorer`` and ``integrity.IntegritySearch``.
"""
