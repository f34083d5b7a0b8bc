"""Comparison of runs with each other, and the history of one figure over many runs.

May not compare runs that were measured differently unless the user insists. Differences come with the circumstances
that differ, and with control of the error rate over all figures. Main types: `compared_run.ComparedRun`,
`compare.Comparison`, `history.FigureHistory`.
"""
