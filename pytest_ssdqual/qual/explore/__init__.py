"""Workload search: the dimensions of the workloads, the simpler of two, and the findings of a search.

May not measure; the plugin drives the search. Every short measurement of a search is a probe, which only chooses a
suspect; the verdict comes from a second measurement. Main types: `Space` and `WorkloadSearch`.
"""
