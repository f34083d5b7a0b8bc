"""The order of a run's measurements: what to do next, what of it was measured before, and on which array.

Main type: ``campaign.Campaign``.
"""
