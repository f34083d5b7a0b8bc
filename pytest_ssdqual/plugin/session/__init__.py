"""One run from start to end: opens bays, records reports, writes artefacts, and ends in order in all cases.

The package judges nothing. It sees to it that a refusal touches nothing, that an error never becomes green, and that
the run folder is complete. Its main types are ``qualification.Qualification``, which is frozen,
and ``state.BayRun``.
"""
