"""Runner of integrity tests: carries out a sequence of steps on an md array and checks every block that is read.

The reference model and the steps are ``qual.integrity``; drives must be held. Main types:
``target.IntegrityTarget`` (an array on which steps act) and ``md_target.MdTarget`` (an md array).
"""
