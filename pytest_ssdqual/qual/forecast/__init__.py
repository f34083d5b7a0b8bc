"""How long steps of a plan will take: the program's own stopping rules on simulated drives.

For plans only: no verdict depends on it. Main function: ``duration.durations``.
"""
