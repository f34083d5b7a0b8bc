"""Lots of drives: sampling plans (ISO 2859-1, ISO 3951) and the verdict on a lot by the verdicts on its sample.

May not judge single drives, which `verdict` does. Main types: `Plan` (by attributes or by variables) and `LotVerdict`.
"""
