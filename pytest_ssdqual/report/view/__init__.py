"""Tables, sections and sentences that terminal, pages, summary, JUnit and metrics share.

May not write a file or produce markup. It reads the records of a run; what is missing in them is left out or shown as
unknown. Main types: `tables.Table`, `tables.Grid`, `failures.Failure`.
"""
