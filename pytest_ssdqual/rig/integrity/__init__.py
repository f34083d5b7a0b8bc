"""Tests of data: sequences of steps on an md array whose every block is compared, power cuts of bare drives, discards.

The reference model, the steps and the judgement are ``qual.integrity``; drives must be held. Main types:
``target.IntegrityTarget`` (an array on which steps act), ``md_target.MdTarget`` (an md array) and
``drive_power.PowerCommands`` (a site's commands); ``erase`` also purges drives and reads what is left.
"""
