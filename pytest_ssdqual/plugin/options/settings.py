"""What the user may say: ``--ssd-*`` options and ``ssd_*`` ini values → one frozen ``Settings``, or a usage error."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.options.declare import DEFAULT_PROTOCOL, LAB_PROTOCOL
from pytest_ssdqual.plugin.options.device_address import Devices, parse_devices

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.options.inventory import BayAsked
    from pytest_ssdqual.plugin.plan.marks import ArrayRequest
    from pytest_ssdqual.qual.integrity.steps import StepSequence

__all__ = ["Devices", "Settings", "active", "live_port", "parse_devices", "parse_wipe", "print_spec_schema", "read"]

#: The drives are written to for as long as a connection may be lost.
MAX_RECONNECT_S = 3600.0
LAST_PORT = 65535
#: Options that say nothing without drives.
NEED_DEVICES = (
    "ssd_wipe", "ssd_spec", "ssd_protocol", "ssd_arrays", "ssd_resume", "ssd_baseline", "ssd_reconnect", "ssd_replay",
    "ssd_expect", "ssd_live", "ssd_openmetrics", "ssd_wait", "ssd_bays", "ssd_bay", "ssd_shared_path",
)  # fmt: skip
#: Paths that a configuration file may name.
IN_FILES = ("ssd_run_dir", "ssd_spec", "ssd_protocol", "ssd_bays")
#: What to do when bays share a path, see ``Settings.on_shared_path``.
SHARED_PATH = ("auto", "error", "warn", "ignore")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice of the user, checked as far as it can be without touching a machine."""

    #: Of the only bay. Of several those of the first: who deals with several asks ``bays``, or ``of`` each of them.
    devices: Devices
    #: At least one.
    bays: tuple[BayAsked, ...]
    spec: str | None
    protocol: str
    wipe: frozenset[str]
    #: Instead of a method's own arrays; none: those.
    arrays: tuple[ArrayRequest, ...]
    run_root: Path
    #: The run to be continued: a path, the name of a folder below ``run_root``, or ``last``.
    resume: str | None
    ssh_config: str | None
    #: Seconds for which a lost connection is tried to be made anew.
    reconnect_s: float
    #: Seconds for which drives that another run holds are waited for.
    wait_s: float
    inconclusive: str
    junit_properties: bool
    #: Whether a page is made at the end.
    page: bool
    #: Where searches keep what they have found.
    explore_database: Path
    #: Instead of the name of the run folder; empty: that.
    explore_seed: str
    #: The one life of an array that is tried, instead of searching.
    replay: StepSequence | None
    #: The run that promises in per cent of a baseline are held against: as ``resume``, or the beginning of its name.
    baseline: str | None = None
    #: Where metrics of the run are written for Prometheus; None: nowhere.
    openmetrics: Path | None = None
    #: One of ``SHARED_PATH``.
    shared_path: str = "auto"
    #: Those of one bay of several.
    is_of_several: bool = False
    #: How many drives each bay must have: by the option, and by the configuration file.
    expect: int | None = None
    expect_default: int | None = None

    def of(self, bay: BayAsked) -> Settings:
        """Those of a run of this bay alone."""
        several = self.is_of_several or len(self.bays) > 1
        ssh_config = bay.ssh_config or self.ssh_config
        return replace(self, devices=bay.devices, bays=(bay,), ssh_config=ssh_config, is_of_several=several)

    def on_shared_path(self, *, acceptance: bool) -> str:
        """``error``, ``warn`` or ``ignore``, under a protocol that is for acceptance or is not."""
        return self.shared_path if self.shared_path != "auto" else "error" if acceptance else "warn"


def read(config: pytest.Config, bays: tuple[BayAsked, ...] = ()) -> Settings | None:
    """The settings, or None if this run has nothing to do with drives; ``pytest.UsageError`` if they make no sense.

    ``bays`` instead of those that the command line means.
    """
    from pytest_ssdqual.plugin.options import inventory
    from pytest_ssdqual.plugin.session import expectation

    _require_words(config)
    bays = bays or inventory.asked(config)
    if not bays:
        _require_idle(config)
        return None
    inconclusive = config.getini("ssd_inconclusive")
    if inconclusive not in ("error", "skip"):
        raise pytest.UsageError(f"ssd_inconclusive must be error or skip, not {inconclusive!r}")
    # All bays are measured alike: with a single real drive among them it is no rehearsal.
    default = LAB_PROTOCOL if all(bay.devices.lab is not None for bay in bays) else DEFAULT_PROTOCOL
    run_dir = config.getoption("ssd_run_dir") or config.getini("ssd_run_dir") or "ssdqual-runs"
    return Settings(
        devices=bays[0].devices,
        bays=bays,
        spec=config.getoption("ssd_spec") or config.getini("ssd_spec") or None,
        protocol=config.getoption("ssd_protocol") or config.getini("ssd_protocol") or default,
        arrays=_arrays(config.getoption("ssd_arrays") or config.getini("ssd_arrays")),
        wipe=frozenset(serial for text in config.getoption("ssd_wipe") for serial in parse_wipe(text)),
        run_root=config.rootpath / run_dir,
        resume=config.getoption("ssd_resume"),
        # What the only bay says of its own; of several each its own, see ``of``.
        ssh_config=(bays[0].ssh_config if len(bays) == 1 else None) or config.getoption("ssd_ssh_config"),
        reconnect_s=_reconnect(config.getoption("ssd_reconnect") or config.getini("ssd_reconnect")),
        wait_s=_duration("--ssd-wait", config.getoption("ssd_wait") or "0"),
        inconclusive=inconclusive,
        junit_properties=config.getini("ssd_junit_properties"),
        page=asked == "yes" if (asked := config.getoption("ssd_page")) else config.getini("ssd_page"),
        explore_database=config.rootpath / (_either(config, "ssd_explore_database") or Path(run_dir, ".explore")),
        explore_seed=config.getoption("ssd_explore_seed") or "",
        replay=_replay(config.getoption("ssd_replay")),
        baseline=config.getoption("ssd_baseline") or None,
        openmetrics=_openmetrics(config),
        shared_path=_shared_path(_either(config, "ssd_shared_path")),
        expect=expectation.parse("--ssd-expect", config.getoption("ssd_expect") or ""),
        expect_default=expectation.parse("ssd_expect", config.getini("ssd_expect")),
    )


def _require_idle(config: pytest.Config) -> None:
    for name in NEED_DEVICES:
        if config.getoption(name):
            option = "--" + name.replace("_", "-")
            raise pytest.UsageError(f"{option} needs --ssd-devices or --ssd-bays: say which drives it is about")


def _require_words(config: pytest.Config) -> None:
    """A configuration file may hold a NUL, which no path, no host and no command can."""
    for name in (*IN_FILES, "ssd_resume", "ssd_ssh_config", "ssd_baseline", "ssd_openmetrics"):
        said = [config.getoption(name), config.getini(name) if name in IN_FILES else None]
        if any("\0" in text for text in said if text):
            raise pytest.UsageError(f"--{name.replace('_', '-')} holds a NUL character, which no name of a file does")


def _openmetrics(config: pytest.Config) -> Path | None:
    """As for pytest's own files, from where it was called."""
    text = config.getoption("ssd_openmetrics")
    path = config.invocation_params.dir / text if text else None
    if path and not hasattr(config, "workerinput") and not path.parent.is_dir():
        raise pytest.UsageError(f"--ssd-openmetrics={text}: there is no folder {path.parent}")
    return path


def _replay(text: str | None) -> StepSequence | None:
    from pytest_ssdqual.qual.integrity.steps import parse

    try:
        return parse(Path(text).read_text(encoding="utf-8")) if text else None
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--ssd-replay={text}: {error}") from error


def parse_wipe(text: str) -> tuple[str, ...]:
    r"""The serials of one ``--ssd-wipe`` value: as ``consent.option`` spells them, ``\,`` for a comma in one."""
    parts = (part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", text))
    return tuple(part for part in parts if part)


def _either(config: pytest.Config, name: str) -> str:
    """An option, or the ini value of the same name."""
    return str(config.getoption(name) or config.getini(name))


def _duration(option: str, text: str) -> float:
    """Seconds; 0 needs no unit."""
    from pytest_ssdqual.qual.units import parse_duration

    try:
        return 0.0 if text.strip() == "0" else parse_duration(text)
    except ValueError as error:
        raise pytest.UsageError(f"{option}={text}: {error}, or 0") from None


def _reconnect(text: str) -> float:
    seconds = _duration("--ssd-reconnect", text)
    if not 0 <= seconds <= MAX_RECONNECT_S:
        raise pytest.UsageError(f"--ssd-reconnect={text}: at most an hour, as the drives are written to all that time")
    return seconds


def _arrays(text: str) -> tuple[ArrayRequest, ...]:
    from pytest_ssdqual.plugin.plan.marks import parse_list

    if not text:
        return ()
    try:
        return parse_list(text)
    except ValueError as error:
        raise pytest.UsageError(f"--ssd-arrays={text}: {error}") from None


def _shared_path(said: str) -> str:
    if said not in SHARED_PATH:
        raise pytest.UsageError(
            f"ssd_shared_path must be {', '.join(SHARED_PATH[:-1])} or {SHARED_PATH[-1]}, not {said!r}"
        )
    return said


def live_port(config: pytest.Config) -> int | None:
    """Where the live page is served, 0: any free port; None: nowhere. ``pytest.UsageError`` for what is no port."""
    text = config.getoption("ssd_live")
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) <= LAST_PORT:
        return int(text)
    raise pytest.UsageError(
        f"--ssd-live={text}: a port is a number up to {LAST_PORT}; for any free one write --ssd-live at the end of the "
        "line or --ssd-live=0"
    )


def active(config: pytest.Config) -> bool:
    """Whether this run has drives and will use them; ``--help`` and its kin must not boot a lab."""
    asked = config.option
    idle = (
        asked.help,
        asked.version,
        asked.markers,
        asked.showfixtures,
        getattr(asked, "show_fixtures_per_test", False),
    )
    # An inventory whose name is empty, as of a variable that is not set, is a mistake and not nothing.
    given = asked.ssd_devices or asked.ssd_bays is not None or any(getattr(asked, name) for name in NEED_DEVICES)
    return not any(idle) and bool(given)


def print_spec_schema() -> None:
    """To standard output, for ``--ssd-spec-schema``."""
    import json

    from pytest_ssdqual.qual.spec import spec

    print(json.dumps(spec.json_schema(), indent=2, ensure_ascii=False))
