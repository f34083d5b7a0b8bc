"""Options, ini values and inventories: from the command line to checked, frozen settings, or a usage error.

The package connects to no machine and creates no file. ``declare`` and ``values`` load in every pytest run and so
import nothing heavy. Its main type is ``settings.Settings``.
"""
