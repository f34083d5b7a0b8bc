"""Options, ini values and inventories: from the command line to checked, frozen settings, or a usage error.

The package connects to no machine and creates no file. ``declare`` loads in every pytest run of the environment and so
imports nothing heavy. Its main type is ``settings.Settings``.
"""
