"""Resuming a run: the checkpoint of what is on the drives, and re-adopting the array that a run left behind.

An array is re-adopted only if its UUID, members and state are those of the checkpoint and its drives pass the guard.
Main type: ``checkpoint.Checkpoint``.
"""
