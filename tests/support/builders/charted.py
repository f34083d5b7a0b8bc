"""A story told in memory: records as runs write them, of which tests take and change what they need."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.measured.result_records import LoopRecord
from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim, Limit, Published
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.verdict.verdict import judge
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing.plot import AnyMark, Chart, Panel
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding, Part, of_verdict
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE
from pytest_ssdqual.report.run_folder.reader import Record, RunReader
from pytest_ssdqual.report.view.tables import Table
from support.builders import manifests
from support.builders.whole_records import whole

NOWHERE = Path("/nonexistent")
#: Of a drive behind every measurement here, by mix: what a RAID 5 makes of it is up to ``measured``.
SERIALS = tuple(f"S3X{index:04}" for index in range(1, 9))


def chart_of_svg(key: str, svg: str, title: str = "t", caption: str = "", table: Table | None = None,
                 geometry: str = "") -> Chart:  # fmt: skip
    """A chart that is not drawn: its drawing is this."""
    chart = Chart(key, title, caption, (), table or Table((), ()), geometry)
    vars(chart)["svg"] = svg
    return chart


def marks(chart: Chart) -> list[AnyMark]:
    """All that a chart of axes consists of."""
    panels = chart.panels if isinstance(chart.panels, tuple) else (chart.panels,)
    axes = [panel for panel in panels if isinstance(panel, Panel)]
    return [mark for panel in axes for mark in (*panel.marks, *panel.right_marks)]


def names(chart: Chart) -> set[str]:
    """Entries of the legend."""
    return {mark.name for mark in marks(chart)} - {""}


def parsed(svg: str) -> ElementTree.Element:
    """A drawing as elements; ``ParseError`` unless it is well-formed."""
    return ElementTree.fromstring(svg)  # noqa: S314 (ours)


def record(kind: str, facts: Mapping[str, object], at_s: int = 0) -> Record:
    """As it is read back from a file, so that nothing but JSON is in it."""
    facts = json.loads(json.dumps(whole(kind, facts)))
    return Record(kind, f"2026-11-21T12:{at_s // 60:02}:{at_s % 60:02}+00:00", facts)


def story(*records: Record, manifest: Mapping[str, object] | None = None, folder: Path = NOWHERE) -> RunReader:
    return RunReader(folder, manifests.manifest(**manifest) if manifest else UNREADABLE, records)


def loops(*records: Record) -> list[LoopRecord]:
    """The loops among these records; damaged ones are left out."""
    return list(story(*records).contents(LoopRecord, "loop"))


def run(array: str, workload: Workload, rounds: Sequence[float], **more: object) -> dict[str, object]:
    """A run's summary: a second a round."""
    iops = sum(rounds) / len(rounds)
    outstanding = workload.outstanding(Geometry.parse(array).width)
    return {
        "geometry": array,
        "workload": str(workload),
        "raw": f"fio/{array}-{workload}-run.json.gz",
        "members": list(SERIALS[: Geometry.parse(array).width]),
        "ramp_s": 0.0,
        "window_s": float(len(rounds)),
        "counted_s": float(len(rounds)),
        "ios": round(sum(rounds)),
        "iops": iops,
        "read_iops": iops * workload.read_fraction,
        "write_iops": iops * (1 - workload.read_fraction),
        "bytes_per_s": iops * workload.block_bytes,
        "mean_latency_ns": outstanding / iops * 1e9,
        "max_latency_ns": 4 * outstanding / iops * 1e9,
        "round_iops": list(rounds),
        "round_max_latency_ns": [3e6 + 1e5 * index for index in range(len(rounds))],
        "cpu_busy": None,
        "seen": None,
        "spell_length_s": None,
        **more,
    }


def measured(array: str, workload: Workload, iops: float, at_s: int = 0, **more: object) -> Record:
    rounds = [iops * factor for factor in (0.99, 1.01, 1.0, 0.98, 1.02)]
    facts = {
        "geometry": array,
        "workload": str(workload),
        "asked": plain(workload),
        "iops": iops,
        "runs": [run(array, workload, rounds, **more)],
    }
    return record("measured", facts, at_s)


def judged(
    claim: Claim, arrays: str, workloads: Iterable[Workload], value: float, bound: float, *, about: About = About.RUN,
    group: str = "", members: Sequence[Part] = (), points: Sequence[Part] = (),
    figures: Mapping[str, float] | None = None, published: Published | None = None,
    worst: str = "", test: str = "suites/test_it.py::test_it",
) -> Record:  # fmt: skip
    """A verdict's record."""
    subject = Subject(tuple(map(Geometry.parse, arrays.split())), tuple(workloads))
    estimate = Estimate(value, 0.98 * value, 1.02 * value, 5, claim.unit)
    verdict = judge(claim, subject, estimate, Limit(claim.direction, bound, claim.unit, "acme.toml promise[3]"))
    evidence = replace(
        of_verdict(verdict), protocol="snia", acceptance=True, about=about, group=group, members=tuple(members),
        points=tuple(points), published=published, worst=worst,
        figures={name: each for name, each in (figures or {}).items()},
    )  # fmt: skip
    return of_evidence(evidence, test)


def of_evidence(evidence: Evidence, test: str = "suites/test_it.py::test_it") -> Record:
    return record("verdict", {"test": f"{test}[{evidence.geometries[0]}-{evidence.workloads[0]}]", **plain(evidence)})


def parity_sweep(level: str = "raid5", serials: Sequence[str] = SERIALS) -> list[Record]:
    """Four mixes at four depths on 3 to 8 drives, each with its promise; writes of 8 drives fall short of theirs."""
    found = []
    for width in (3, 4, 6, 8):
        for reads in (0, 70, 100):
            for depth in (1, 4):
                kind = "randread" if reads == 100 else "randrw" if reads else "randwrite"
                workload = Workload(kind, "4k", depth, read_percent=reads or None if reads < 100 else None)
                iops = 1000.0 * width * (0.3 + 0.7 * reads / 100) * depth**0.5
                array = f"{level}x{width}"
                bound = iops * (1.3 if width == 8 and not reads else 0.8)
                found.append(measured(array, workload, iops, at_s=60 * width + depth, members=list(serials[:width])))
                found.append(judged(Claim.STEADY_IOPS, array, [workload], iops, bound))
    return found


def depths(published: bool = True) -> Record:
    """A curve over queue depths with its knee."""
    workloads = [Workload("randread", "4k", depth, threads=1) for depth in (1, 4, 16, 64)]
    points = []
    for workload, iops in zip(workloads, (8e3, 28e3, 88e3, 90e3), strict=True):
        depth = workload.qd_per_drive
        stated = [Published(iops * 1.1, Claim.STEADY_IOPS.unit, "habr.com 156147")] if published else []
        figures = {"outstanding": depth, "iops": iops, "mean_latency_ns": depth / iops * 1e9}
        points.append(Part(str(workload), figures, published=tuple(stated)))
    return judged(
        Claim.QD_KNEE, "raid0x4", workloads, 16, 8, about=About.CURVE, group="randread_qd1to64", points=points
    )


def bathtub() -> Record:
    """A mix sweep that sags in the middle."""
    mixes = {100: 90e3, 65: 40e3, 35: 25e3, 0: 50e3}
    workloads, points = [], []
    for reads, iops in mixes.items():
        kind = "randread" if reads == 100 else "randwrite" if reads == 0 else "randrw"
        workload = Workload(kind, "8k", 32, read_percent=reads if 0 < reads < 100 else None)
        workloads.append(workload)
        points.append(
            Part(
                str(workload),
                {"outstanding": 32, "iops": iops, "mean_latency_ns": 32 / iops * 1e9},
            )
        )
    return judged(
        Claim.BATHTUB_DEPTH, "raid0x4", workloads, 0.4, 0.6, about=About.CURVE, group="mixes_8k", points=points
    )


def outlier(name: str = SERIALS[4]) -> Record:
    """Eight drives side by side of which one is slow."""
    workload = Workload("randread", "4k", 8)
    serials = [*SERIALS[:4], name, *SERIALS[5:]]
    members = [
        Part(
            serial,
            {"value": 41e3 if serial == name else 80e3 + 300 * index},
            Finding.FAIL if serial == name else Finding.PASS,
        )
        for index, serial in enumerate(serials)
    ]
    return judged(Claim.STEADY_IOPS, "drivex8", [workload], 41e3, 60e3, members=members, worst=name)


def saturation() -> list[Record]:
    """Fresh for a while, then a cliff, then settled, of one drive of 1 GB."""
    workload = Workload("randwrite", "4k", 32)
    rounds = [20e3] * 12 + [9e3, 6e3] + [5e3 + 50 * (index % 3) for index in range(150)]
    facts = {
        "geometry": "drivex1",
        "workload": str(workload),
        "asked": plain(workload),
        "capacity_bytes": 10**9,
        "run": run("drivex1", workload, rounds),
    }
    figures = {"fresh_iops": 20e3, "cliff_capacities": 0.983, "cliff_s": 12.0, "settled_iops": 5050.0,
               "settled_capacities": 1.06, "settled_s": 14.0, "capacities": 4.1, "seconds": 164.0}  # fmt: skip
    promised = judged(Claim.SETTLED_IOPS, "drivex1", [workload], 5050, 4000, about=About.SATURATION, figures=figures)
    return [record("saturation", facts), promised]


def conditioned() -> Record:
    rounds = [9000.0, 7000.0, 5500.0, 5100.0, 5050.0, 4980.0, 5020.0, 5000.0]
    average = sum(rounds[-5:]) / 5
    steady = {"values": rounds[-5:], "average": average, "range_allowed": 0.2 * average, "slope_allowed": 0.1 * average}
    facts = {"geometry": "raid5x4", "workload": "randwrite_4k_qd8", "round_iops": rounds, "steady": steady}
    return record("conditioned", facts)


def matrix() -> list[Record]:
    """Every size with every mix on one array."""
    found = []
    for size in ("512", "4k", "32k", "128k"):
        for reads in (100, 65, 0):
            kind = "randread" if reads == 100 else "randwrite" if reads == 0 else "randrw"
            workload = Workload(kind, size, 32, read_percent=reads if 0 < reads < 100 else None, threads=2)
            iops = min(300e3 * (0.2 + 0.8 * reads / 100), 1.6e9 / workload.block_bytes)
            found.append(measured("raid0x6", workload, iops))
    return found


def profiles() -> list[Record]:
    """Three servers' workloads on two arrays."""
    found = []
    for width in (4, 8):
        for name, sizes, iops in (("database", "8k", 20e3), ("exchange", "32k", 9e3), ("web", "4k/60:64k/40", 15e3)):
            workload = Workload("randrw", sizes, 32, read_percent=67, name=name)
            found.append(measured(f"raid0x{width}", workload, iops * width**0.9))
    return found


def search(outcome: str = "confirmed") -> list[Record]:
    """A search that finds a broken workload, makes it simpler in two steps, and measures it anew."""
    plain = Workload("randread", "4k", 1)
    wide = Workload("randrw", "128k", 16, read_percent=70, offset="512", sync=True)
    middle = Workload("randwrite", "128k", 1, offset="512", sync=True)
    simple = Workload("randwrite", "64k", 1, offset="512", sync=True)
    looks = [
        (plain, 50.0, "kept"), (Workload("randread", "8k", 4), 20.0, "kept"), (wide, -70.0, "broken"),
        (Workload("randwrite", "4k", 1), 45.0, "kept"), (middle, -65.0, "broken"), (simple, -62.0, "broken"),
        (Workload("randwrite", "64k", 1), 3.0, "undecided"), (Workload("randwrite", "4k", 1, sync=True), None, ""),
    ]  # fmt: skip
    findings = {"kept": Finding.PASS, "broken": Finding.FAIL, "undecided": Finding.INCONCLUSIVE}
    points = [
        Part(str(work), {"margin_percent": margin, "seconds": 6.0}, findings.get(look)) for work, margin, look in looks
    ]
    facts = {
        "geometry": "drivex2",
        "plain": str(plain),
        "began_with": [],
        "probed": [
            {
                "workload": str(work),
                "look": look or "unmeasurable",
                "seconds": 6.0,
                "verdict": f"steady IOPS of {work}",
                "trouble": [],
                "unseen": [],
            }
            for work, _, look in looks
        ],
        "suspects": [
            {
                "workload": str(simple),
                "claim": "steady_iops",
                "drive": "",
                "is_simplest": True,
                "verdict": "",
                "confirmed": outcome == "confirmed",
                "cleared": outcome == "cleared",
                "job_file": "",
            },
        ],
    }
    value = 75 if outcome == "confirmed" else 300
    told = judged(
        Claim.STEADY_IOPS, "drivex2", [simple], value, 200, about=About.SEARCH, points=points,
        group=f"searched {len(looks)} random workloads on drivex2",
    )  # fmt: skip
    return [record("searched", facts), told]


def health(names: Sequence[str] = SERIALS) -> list[Record]:
    found = []
    for when, at_s, written in (("before", 0, 10**9), ("after", 3000, 9 * 10**9)):
        for index, name in enumerate(names):
            facts = {
                "drive": name,
                "when": when,
                "temperature_c": 31 + index + at_s // 300,
                "data_written_bytes": written + index * 10**8,
                "percentage_used": 1,
                "media_errors": 0,
            }
            found.append(record("health", facts, at_s))
    return found


def with_output(folder: Path, array: str, workload: Workload, seconds: Sequence[Mapping[int, int]]) -> Record:
    """A measurement whose output is there: of each second, I/Os by latency in ns."""
    (folder / "fio").mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    documents, counts = [], Counter[int]()
    for number, each in enumerate(seconds, start=1):
        counts.update(each)
        documents.append(json.dumps(_document(number, counts)))
    raw = f"fio/{array}-{workload}-run.json.gz"
    path = folder / raw
    path.write_bytes(gzip.compress("\n".join(documents).encode()))
    path.chmod(0o600)
    rounds = [float(sum(each.values())) for each in seconds]
    slowest = [float(max(each)) for each in seconds]
    facts = {
        "geometry": array,
        "workload": str(workload),
        "asked": plain(workload),
        "iops": sum(rounds) / len(rounds),
        "runs": [run(array, workload, rounds, round_max_latency_ns=slowest, raw=raw)],
    }
    return record("measured", facts)


def _document(number: int, counts: Mapping[int, int]) -> dict[str, object]:
    """A status document of fio 3.33 after so many seconds, of reads."""
    ios = sum(counts.values())
    latency = {"N": ios, "mean": 0.0, "max": max(counts), "bins": {str(each): counts[each] for each in sorted(counts)}}
    nothing = {"runtime": 1000 * number, "total_ios": 0, "io_bytes": 0, "lat_ns": {"N": 0, "mean": 0.0, "max": 0}}
    reads = {"runtime": 1000 * number, "total_ios": ios, "io_bytes": 4096 * ios, "lat_ns": latency}
    job = {"jobname": "", "error": 0, "usr_cpu": 1.0, "sys_cpu": 1.0, "read": reads, "write": nothing}
    return {"fio version": "fio-3.33", "timestamp_ms": 1795262516000 + 1000 * number, "jobs": [job]}


def everything() -> RunReader:
    """At least one of each kind of chart that needs no output of fio."""
    return story(
        *parity_sweep(), depths(), bathtub(), outlier(), *saturation(), conditioned(), *matrix(), *profiles(),
        *search(), *health()
    )  # fmt: skip


def demand_loop(array: str = "drivex1", *, best: float = 75e3, base_s: float = 100e-6, **more: object) -> Record:
    """DIRTH's grid on drives that serve an I/O in ``base_s`` and at most ``best`` IOPS, over five rounds."""
    loop, drives = snia.DEMAND_VARIATIONS[0], Geometry.parse(array).width if array.startswith("drive") else 1

    def cell(workload: Workload, factor: float) -> dict[str, object]:
        outstanding = workload.outstanding(1)
        alone = 1 / (base_s / outstanding + 1 / best) * factor
        latency_ns = outstanding / alone * 1e9
        return run(array, workload, [alone * drives], mean_latency_ns=latency_ns, max_latency_ns=9 * latency_ns)

    rounds = [[cell(each, factor) for each in loop.workloads] for factor in (0.99, 1.01, 1.0, 0.98, 1.02)]
    facts = {"geometry": array, "loop": loop.name, "asked": plain(loop), "rule": plain(SteadyRule()), "reached": True}
    return record("loop", {**facts, "rounds": rounds, **more})


def wording(chart: Chart) -> list[str]:
    """What a chart says beside its drawing: title, caption and table."""
    rows = (chart.table.columns, *chart.table.rows)
    return [chart.title, chart.caption, *(" | ".join(map(str, row)) for row in rows)]


def words(chart: Chart) -> set[str]:
    return {"".join(each.itertext()) for each in parsed(chart.svg).iter("text")}


def notes(*records: Record) -> Notes:
    return Notes.of(story(*records))
