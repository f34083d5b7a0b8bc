"""Terminal output: plan, progress lines while a run lasts, and the table at its end.

May not measure or judge. Text is made printable before it is written; colours are names that pytest's writer resolves.
Main types: `progress.Progress` and `plan.PrintedPlan`; `summary.table` makes the table.
"""
