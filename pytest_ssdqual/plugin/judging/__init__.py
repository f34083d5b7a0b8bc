"""The fixtures ``ssd_sla`` and ``ssd_lot``: judge measurements by the promises of the spec, and build the evidence.

The statistics are in ``qual``; this package selects the promise, calls them, and converts the outcome to a result of
pytest. It does not decide what is measured. Its main type is ``sla.Sla``.
"""
