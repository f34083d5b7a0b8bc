"""What each publication ran, as values: a module for each, named after it; ``docs/methods.md`` has the whole table.

Their figures are data of the products (``specs``), their durations are protocols. A constant says which table of its
source it is; where the source's text was damaged, or silent, it says what was taken instead and why.
"""
