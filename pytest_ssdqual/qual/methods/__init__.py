"""Workloads of published test methods, as values: a module for each publication; ``docs/methods.md`` has the whole
table.

Their figures are data of the products (``specs``), their durations are protocols. A constant names the table of its
source; if the source's text is damaged or silent, it states what was used instead and why.
"""
