"""Runner of integrity tests: carries out a sequence of steps on an md array and checks every block that is read.

The reference model and the steps are ``qual.integrity``; drives must be held. Main types: ``target.Body`` (what the
steps act on) and ``md_target.LiveBody`` (an md array).
"""
