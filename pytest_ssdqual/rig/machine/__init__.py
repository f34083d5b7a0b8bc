"""The machine under test, on which every command runs: this one or another over OpenSSH.

Commands are argv lists and never pass through a shell of the controller; what they print is untrusted input. A
supervisor on the machine ends a run's processes when the controller dies or the connection drops; a keeper lets work
finish that must not be interrupted. No module here knows what a drive is. Main type: ``machine.Machine``.
"""
