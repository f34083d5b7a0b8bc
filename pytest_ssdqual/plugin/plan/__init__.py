"""From marks to a plan: which arrays and workloads the collected tests need, in which order, and at what cost.

The package touches no drive. It skips a test that these drives cannot serve, with the reason, and never reduces one.
The plan is ``order.Steps``, which ``rig.campaign.campaign`` executes.
"""
