"""A run on one screen, before any of it is markup: fitness, causes, errors, the next step, the budget, write caches.

``RunView`` reads a run folder for all surfaces; tables and sections are in ``report.view``.
"""
