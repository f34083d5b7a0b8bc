"""Integrity test: step sequences that an array's data must survive, and the model of what must be read back.

May not touch an array; `rig.integrity` runs the steps. `steps` is the script language, `array_state` the possible
steps and the reduction of a failing sequence, `reference_model` the judge of what was read and the verdict, `stamp`
the content of every block.
"""
