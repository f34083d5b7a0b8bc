"""Runs of several bays: one pytest-xdist worker per bay, started, scheduled and reported together.

Only ``xdist`` uses pytest-xdist. The package opens and schedules bays, but measures and judges nothing: each bay is a
run of its own. Its main type is ``bays.FleetRun``.
"""
