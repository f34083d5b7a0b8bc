"""``python -m pytest_ssdqual.lab``: boot the lab's machine and open a shell in it."""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from pytest_ssdqual.lab import start
from pytest_ssdqual.lab.drives import check_count, shelf
from pytest_ssdqual.lab.host import LabUnavailable, cache_directory
from pytest_ssdqual.lab.image.image import ensure
from pytest_ssdqual.lab.image.release import named
from pytest_ssdqual.lab.vm import LabFailed, Vm
from pytest_ssdqual.qual.units import parse_latency

T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pytest_ssdqual.lab", description=__doc__)
    count = _argument(lambda text: check_count(int(text)))
    parser.add_argument("--drives", type=count, default=8, metavar="N", help="number of emulated drives (default: 8)")
    parser.add_argument("--iops", type=int, default=300, help="speed of each drive (default: 300)")
    parser.add_argument(
        "--latency",
        type=_argument(parse_latency),
        default=0,
        metavar="TIME",
        help='of each I/O, e.g. "64 ms"; the drives keep no data',
    )
    parser.add_argument(
        "--release", type=_argument(_release), default="", help="Debian release, e.g. debian13 (default: the host's)"
    )
    parser.add_argument("--build-only", action="store_true", help="build the guest's image and boot nothing")
    options = parser.parse_args(arguments)
    try:
        if options.build_only:
            print(ensure(cache_directory(), _say, release=options.release).initrd.parent)
        else:
            drives = shelf(options.drives, iops=options.iops, latency_ns=options.latency)
            with start(drives, release=options.release, say=_say) as machine:
                _open_shell(machine)
    except (LabUnavailable, LabFailed) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _open_shell(machine: Vm) -> None:
    print(shlex.join(machine.ssh.argv()), flush=True)
    if sys.stdin.isatty():
        subprocess.run(machine.ssh.argv(), check=False)
    else:
        print("the lab runs until it is interrupted", flush=True)
        signal.pause()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser whose ``ValueError`` becomes the error of argparse."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


def _release(text: str) -> str:
    return named(text).name if text else ""  # argparse converts a default that is a string


if __name__ == "__main__":
    # a TERM of a supervisor must stop the machine as Ctrl-C does
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
