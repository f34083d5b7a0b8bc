"""Observers of a run: the progress line on the terminal and the live page.

The package only reads progress events, verdicts and live statistics. An error in an observer must never end or change a
measurement. Its main type is ``observers.Observers``.
"""
