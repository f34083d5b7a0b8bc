"""Observation of the machine during a measurement: environment, temperatures, kernel log and live statistics.

Read-only, and at intervals that do not disturb what is measured. Main types:
``environment.EnvironmentReading`` and ``live_stats.Live``.
"""
