"""Fleets: runs of several bays (machines under test) in one folder, shown side by side.

May not judge: the verdict on a bay is that of its own run. A fleet is fit only if every requested bay is fit; a bay
that was lost or not started is reported as such. Main types: `folder.Fleet` and `view.FleetView`.
"""
