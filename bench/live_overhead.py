"""Cost of live statistics: fio's null engine alone, and beside a reader, a server and two open pages.

Everything runs on one computer here, which is the worst case: a controller of its own leaves the machine under test
nothing but the shell that answers. Pairs of runs in random order; what is compared is the CPU time of fio's job per
I/O, because the I/Os per second of a shared computer say more about its neighbours. Run it from the root folder:

    python bench/live_overhead.py --pairs 20
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import resource
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_ssdqual.live.feed import Feed, Topic
from pytest_ssdqual.live.server import LiveServer
from pytest_ssdqual.qual.progress_events import LoadBegun, News, Now
from pytest_ssdqual.rig.machine.line_process import LineProcess
from pytest_ssdqual.rig.observe.live_stats import ANSWER, Live

CLIENTS = 2
BLOCKS = Path("/sys/class/block")


def fio_ns_per_io(seconds: float) -> float:
    """CPU time of the job of one process on the null engine, per I/O."""
    argv = [
        "fio", "--name=null", "--ioengine=null", "--size=1t", "--rw=randread", "--bs=4k", "--time_based",
        f"--runtime={seconds:g}", "--thread=0", "--output-format=json", "--iodepth=8",
    ]  # fmt: skip
    done = subprocess.run(argv, check=True, capture_output=True)
    (job,) = json.loads(done.stdout)["jobs"]
    busy_ms = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["read"]["runtime"]
    return float(busy_ms * 1e6 / job["read"]["total_ios"])


def talk(argv: Sequence[str]) -> LineProcess:
    return LineProcess(argv, ["env", "LC_ALL=C", *argv], lambda done: None)


def cpu_per_glance_ms(names: Sequence[str], glances: int) -> float:
    """Return the CPU time of the answering shell, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    conversation = talk(["sh", "-c", ANSWER])
    for _ in range(glances):
        if conversation.ask(" ".join(names), len(names), 10) is None:
            raise SystemExit("the shell does not answer")
    conversation.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / glances


@contextmanager
def watched(names: Sequence[str], period_s: float) -> Iterator[None]:
    """Run all parts of ``--ssd-live`` while fio runs, with pages open."""
    feed = Feed()
    server = LiveServer(feed)

    def tell(news: News) -> None:
        if isinstance(news, Now):
            feed.publish(Topic.STRIP, {"at_ms": round(1000 * time.time()), "iops": list(news.iops)})

    pages = [threading.Thread(target=_page, args=(server,)) for _ in range(CLIENTS)]
    for each in pages:
        each.start()
    live = Live(tell, talk, period_s)
    with live.watching(LoadBegun("measure", "drive", "randread", tuple(names)), names, 4096):
        yield
    live.close()
    feed.end({})
    server.close()
    for each in pages:
        each.join()


def cpu_of_watching(names: Sequence[str], seconds: float, period_s: float) -> tuple[float, float]:
    """Return per cent of one CPU: of the remote shell; and of reader, server and pages, which are threads here."""

    def spent() -> list[float]:
        found = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        return [each.ru_utime + each.ru_stime for each in found]

    before = spent()
    with watched(names, period_s):
        time.sleep(seconds)
    there, here = (100 * (after - was) / seconds for after, was in zip(spent(), before, strict=True))
    return there, here


def _page(server: LiveServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", f"/{server.word}/events")
    with contextlib.closing(connection), connection.getresponse() as answer:
        while answer.read1(1 << 16):
            pass


def ratios(names: Sequence[str], pairs: int, seconds: float, period_s: float) -> list[float]:
    """Watched over bare, of each pair."""
    found = []
    for _ in range(pairs):
        cost: dict[bool, float] = {}
        for is_watched in random.sample([True, False], 2):
            with watched(names, period_s) if is_watched else contextlib.nullcontext():
                cost[is_watched] = fio_ns_per_io(seconds)
        found.append(cost[True] / cost[False])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3, help="of each run")
    parser.add_argument("--period", type=float, default=1, help="seconds between two live statistics")
    parser.add_argument("--devices", type=int, default=8)
    asked = parser.parse_args()
    names = sorted(path.name for path in BLOCKS.iterdir())[: asked.devices]
    names *= -(-asked.devices // len(names))
    for count in (1, asked.devices, 3 * asked.devices):
        cost_ms = cpu_per_glance_ms((names * 3)[:count], 1000)
        print(f"a glance at {count} devices: {cost_ms:.3f} ms of one CPU, {cost_ms / asked.period / 10:.4f} % of it")
    there, here = cpu_of_watching(names[: asked.devices], 30, asked.period)
    print(
        f"watching {asked.devices} devices every {asked.period:g} s with {CLIENTS} pages open: {there:.3f} % "
        f"of one CPU on the machine under test, {here:.3f} % on the controller"
    )
    found = sorted(ratios(names[: asked.devices], asked.pairs, asked.seconds, asked.period))
    middle, spread = statistics.median(found), statistics.stdev(found) / len(found) ** 0.5
    print(
        f"CPU time of fio per I/O, watched over bare: median {middle:.4f}, mean {statistics.fmean(found):.4f} "
        f"± {2 * spread:.4f} (two standard errors), {len(found)} pairs from {found[0]:.3f} to {found[-1]:.3f}"
    )


if __name__ == "__main__":
    main()
