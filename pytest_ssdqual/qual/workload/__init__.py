"""Workloads: access pattern, transfer sizes, mix and depth; sets of them, and rounds of them as SNIA measures.

May not run anything. Main type: `Workload`, whose ``str()`` is its pytest id. Sets of single publications are in
`qual.methods`.
"""
