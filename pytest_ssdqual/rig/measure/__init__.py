"""Measurements on held drives: build and fill an array, then measure for a fixed time, in rounds or sequentially.

Nothing is measured during a resync, except a rebuild that is itself the subject. Here measurements are made, not
judged. Main type: ``session.Setup``.
"""
