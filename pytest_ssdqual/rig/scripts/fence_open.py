# The same as fence_open.pl, for machines without perl, by Python 3.6 or later.
#
# Arguments, output and exit status: see there.

import os
import sys
import time

argv = sys.argv[1:]
flags = os.O_RDONLY | os.O_NONBLOCK | (os.O_EXCL if argv[4] == "alone" else 0)
for at in range(6, 6 + 4 * int(argv[5]), 4):
    for pause in [0.2] * 10 + [0]:
        try:
            device = os.open(argv[at], flags)
            break
        except OSError as problem:
            if problem.errno != 16 or not pause:
                sys.stderr.write(f"{argv[at]}: {problem.strerror}\n")
                sys.exit(76)
            time.sleep(pause)
    os.set_inheritable(device, True)
    argv[at] = f"{device}:{argv[at]}"
os.execvp(argv[0], argv)  # noqa: S606 (what it is for)
