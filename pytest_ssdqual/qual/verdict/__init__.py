"""Verdicts: estimates of claims compared with their limits.

May not measure, choose limits (`spec`) or compute intervals (`stats`). A verdict is pass, fail or inconclusive;
inconclusive is never a pass and never blames a drive. Main type: `Verdict`, made by `judge_all`;
`estimators` maps each claim to the function that estimates it.
"""
