"""fio: jobs, the process, its status documents, and whether its result is acceptable.

The exit status is never trusted: ``acceptance`` checks errors, options and totals before a result becomes a ``Run``.
This package starts fio only on paths that its caller holds. Main types: ``jobs.Job`` and ``output.StatusReader``.
"""
