"""Validity of measurements: checks that may find a run unfit to be judged.

An objection is a fault of the rig (host, heat, foreign I/O, fio), never of the product, and makes a test an error. What
is unknown is neither an objection nor a pass. May not change a measurement or judge a claim. Main type: the check of
`check`; `checks.checks` runs all of them.
"""
