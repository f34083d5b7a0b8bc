"""Converts ``--ssd-*`` options and ``ssd_*`` ini values to one frozen ``Settings``, or a usage error."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.options import values
from pytest_ssdqual.plugin.options.declare import DEFAULT_PROTOCOL, LAB_PROTOCOL
from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ssdqual.plugin.options.inventory import BayRequest
    from pytest_ssdqual.plugin.options.smart_type import SmartType
    from pytest_ssdqual.plugin.plan.marks import ArrayRequest
    from pytest_ssdqual.qual.integrity.steps import StepSequence
    from pytest_ssdqual.qual.workload.trace import Trace
    from pytest_ssdqual.rig.drives.topology import Source
    from pytest_ssdqual.rig.guard.consent import Consent
    from pytest_ssdqual.rig.integrity.drive_power import PowerCommands

LAST_PORT = 65535
#: Options without a meaning in a run without drives.
NEED_DEVICES = (
    "ssd_wipe", "ssd_shared", "ssd_configured", "ssd_unreadable", "ssd_unchecked", "ssd_spec",
    "ssd_protocol", "ssd_arrays", "ssd_resume", "ssd_baseline", "ssd_reconnect", "ssd_replay",
    "ssd_expect", "ssd_live", "ssd_openmetrics", "ssd_wait", "ssd_bays", "ssd_bay", "ssd_shared_path",
    "ssd_read_only", "ssd_budget", "ssd_force_spec", "ssd_mixed", "ssd_smart_type", "ssd_notify",
    "ssd_power_off", "ssd_power_on", "ssd_trace",
)  # fmt: skip
#: Options with a path that are ini values, too.
IN_FILES = ("ssd_run_dir", "ssd_spec", "ssd_protocol", "ssd_bays")


@frozen
class Settings:
    """All options of a run, checked as far as possible without a machine."""

    #: Drives of the only bay. In a run of several bays: of the first; use ``bays``, or ``of`` for each of them.
    devices: Devices
    #: At least one.
    bays: tuple[BayRequest, ...]
    #: Paths or shipped names, each for the drives that it names; empty: the shipped sheets of the drives' models.
    specs: tuple[str, ...]
    protocol: str
    #: Risks of drives that the user takes.
    consents: frozenset[Consent]
    #: Sources of the guard that may be blind.
    unchecked: frozenset[Source]
    #: Replace the arrays of the methods' suites; empty: each method's own arrays.
    arrays: tuple[ArrayRequest, ...]
    run_root: Path
    #: The run to resume: a path, the name of a folder below ``run_root``, or ``last``.
    resume: str | None
    ssh_config: str | None
    #: Seconds for which the rig tries to restore a lost connection.
    reconnect_s: float
    #: Seconds to wait for drives that another run has leased.
    wait_s: float
    inconclusive: str
    junit_properties: bool
    #: Write report.html at the end.
    page: bool
    #: Bare drives are measured before arrays.
    members: bool
    #: Folder for the findings of searches.
    explore_database: Path
    #: Seed of searches; empty: the name of the run folder.
    explore_seed: str
    #: The only history that integrity tests run; None: they search.
    replay: StepSequence | None
    #: The baseline run: as ``resume``, or the beginning of its name.
    baseline: str | None
    #: The trace of replays.
    trace: Trace | None
    #: File for Prometheus metrics; None: none.
    openmetrics: Path | None
    #: One of ``values.SHARED_PATH``.
    shared_path: str
    #: Number of drives that each bay must have: of the option, and of the configuration file.
    expect: int | None
    expect_default: int | None
    #: Nothing is written to the drives: neither consent nor a lease is needed.
    read_only: bool
    #: The spec may be for other drives.
    force_spec: bool
    #: The drives may differ in model and firmware.
    mixed: bool
    #: Claims that must be judged; None: each claim that the selected tests declare.
    required_claims: tuple[str, ...] | None
    #: Seconds that the whole run may take; None: as long as it takes.
    budget_s: float | None
    #: Tests without a limit are measured, too.
    measure_unpromised: bool
    #: Types of drives for smartctl, unless a bay has its own.
    smart_types: tuple[SmartType, ...]
    #: Commands that cut and restore the power of drives; None: their power is not cut.
    power: PowerCommands | None
    #: These settings belong to one bay of several.
    is_of_several: bool = False

    def of(self, bay: BayRequest) -> Settings:
        """Return the settings of one bay."""
        several = self.is_of_several or len(self.bays) > 1
        ssh_config = bay.ssh_config or self.ssh_config
        return replace(
            self, devices=bay.devices, bays=(bay,), ssh_config=ssh_config, is_of_several=several,
            smart_types=bay.smart_types or self.smart_types,
        )  # fmt: skip

    def on_shared_path(self, *, acceptance: bool) -> str:
        """Return ``error``, ``warn`` or ``ignore``; ``auto`` depends on whether the protocol is for acceptance."""
        if self.shared_path != "auto":
            return self.shared_path
        return "error" if acceptance else "warn"


def read(config: pytest.Config, bays: tuple[BayRequest, ...] = ()) -> Settings:
    """Return the settings; raise ``pytest.UsageError`` for a wrong value, and without drives.

    ``bays`` replaces the bays of the command line.
    """
    from pytest_ssdqual.plugin.options import inventory

    _require_words(config)
    _require_known_ini(config)
    bays = bays or inventory.asked(config)
    if not bays:
        for name in NEED_DEVICES:
            if config.getoption(name):
                raise pytest.UsageError(f"{_option(name)} needs drives: add --ssd-devices or --ssd-bays")
        raise pytest.UsageError(
            "name the drives: ssdqual doctor --devices=WHERE, or pytest --ssd-doctor with --ssd-devices or --ssd-bays"
        )
    # Fixtures would prepare and measure the drives, and no test would judge them.
    if config.option.setuponly and not config.option.collectonly:
        raise pytest.UsageError(
            "--setup-only and --setup-plan would run no test, and so judge nothing: --collect-only prints the plan"
        )
    _require_known_place(config)
    return _of(config, bays)


def _of(config: pytest.Config, bays: tuple[BayRequest, ...]) -> Settings:
    """Return the settings of a run with drives."""
    # The lab's only if none has real drives.
    default_protocol = LAB_PROTOCOL if all(bay.devices.lab is not None for bay in bays) else DEFAULT_PROTOCOL
    run_dir = config.getoption("ssd_run_dir") or config.getini("ssd_run_dir") or "ssdqual-runs"
    return Settings(
        devices=bays[0].devices,
        bays=bays,
        specs=_specs(config),
        protocol=values.either(config, "ssd_protocol") or default_protocol,
        arrays=_arrays(config.getoption("ssd_arrays") or config.getini("ssd_arrays")),
        consents=_consents(config),
        unchecked=_unchecked(config.getoption("ssd_unchecked")),
        run_root=config.rootpath / run_dir,
        resume=config.getoption("ssd_resume"),
        # The inventory's entry of the only bay comes first; ``of`` does the same for several bays.
        ssh_config=(bays[0].ssh_config if len(bays) == 1 else None) or config.getoption("ssd_ssh_config"),
        reconnect_s=values.reconnect_s(config.getoption("ssd_reconnect") or config.getini("ssd_reconnect")),
        budget_s=values.budget_s(values.either(config, "ssd_budget")),
        wait_s=values.duration_s("--ssd-wait", config.getoption("ssd_wait") or "0"),
        inconclusive=values.one_of("ssd_inconclusive", config.getini("ssd_inconclusive"), ("error", "skip")),
        required_claims=_required_claims(config),
        junit_properties=values.truth(config, "ssd_junit_properties"),
        members=values.truth(config, "ssd_members"),
        page=asked == "yes" if (asked := config.getoption("ssd_page")) else values.truth(config, "ssd_page"),
        explore_database=config.rootpath / (values.either(config, "ssd_explore_database") or Path(run_dir, ".explore")),
        explore_seed=config.getoption("ssd_explore_seed") or "",
        replay=_replay(config.getoption("ssd_replay")),
        baseline=config.getoption("ssd_baseline") or None,
        trace=_trace(config.getoption("ssd_trace")),
        openmetrics=_openmetrics(config),
        shared_path=values.one_of("ssd_shared_path", values.either(config, "ssd_shared_path"), values.SHARED_PATH),
        expect=values.drive_count("--ssd-expect", config.getoption("ssd_expect") or ""),
        expect_default=values.drive_count("ssd_expect", config.getini("ssd_expect")),
        read_only=_read_only(config),
        force_spec=config.getoption("ssd_force_spec"),
        mixed=config.getoption("ssd_mixed"),
        measure_unpromised=values.truth(config, "ssd_measure_unpromised"),
        smart_types=(bays[0].smart_types if len(bays) == 1 else ()) or _smart_types(config),
        power=_power(config.getoption("ssd_power_off"), config.getoption("ssd_power_on")),
    )


def _power(off: str | None, on: str | None) -> PowerCommands | None:
    """Return the commands of both options; ``pytest.UsageError`` for one without the other."""
    if not (off or on):
        return None
    if not (off and on):
        raise pytest.UsageError("--ssd-power-off and --ssd-power-on belong together: give both, or neither")
    from pytest_ssdqual.rig.integrity.drive_power import PowerCommands

    with usage_error(ValueError, of="--ssd-power-off, --ssd-power-on"):
        return PowerCommands.parse(off, on)


def _required_claims(config: pytest.Config) -> tuple[str, ...] | None:
    """Return the claims that must be judged; ``pytest.UsageError`` for an unknown one."""
    if not values.truth(config, "ssd_require_verdicts"):
        return ()
    from pytest_ssdqual.qual.spec.claims import Claim
    from pytest_ssdqual.report.run_summary.coverage import GROUPS

    known = [*Claim, *GROUPS]
    names = [name for text in config.getini("ssd_required_claims") for name in text.replace(",", " ").split()]
    for name in names:
        if name not in known:
            hint = choice(name, known, "claims")
            raise pytest.UsageError(f"ssd_required_claims names an unknown claim {name!r}; {hint}")
    return tuple(dict.fromkeys(names)) or None


def _smart_types(config: pytest.Config) -> tuple[SmartType, ...]:
    from pytest_ssdqual.plugin.options import smart_type

    with usage_error(ValueError, of="--ssd-smart-type"):
        return smart_type.parse(config.getoption("ssd_smart_type"))


def _read_only(config: pytest.Config) -> bool:
    """Return the option; ``pytest.UsageError`` with an option that only a run that writes can have."""
    asked = bool(config.getoption("ssd_read_only"))
    for name in (
        "ssd_wipe", "ssd_shared", "ssd_configured", "ssd_unreadable", "ssd_resume", "ssd_replay", "ssd_power_off",
    ):  # fmt: skip
        if asked and config.getoption(name):
            raise pytest.UsageError(f"{_option(name)} is for runs that write to drives: remove it, or --ssd-read-only")
    return asked


def _require_known_place(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` for ini values in a table that this pytest does not read.

    pytest reads ``[tool.pytest]`` from version 9 on, and ignores it before.
    """
    if pytest.version_tuple >= (9,):
        return
    try:
        document = tomllib.loads((config.rootpath / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    table = document.get("tool", {}).get("pytest", {})
    if unread := sorted(key for key in table if key.startswith("ssd_")):
        raise pytest.UsageError(
            f"pytest {pytest.__version__} does not read {', '.join(unread)} in pyproject.toml below [tool.pytest]: "
            "write them below [tool.pytest.ini_options]"
        )


def _option(name: str) -> str:
    """Return an option as it is typed, by its name in pytest's configuration."""
    return "--" + name.replace("_", "-")


def _require_words(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` for text that no path, host or command may be: with a NUL character, or empty.

    A shell variable that is not set leaves an option without a value. As if it were not given, the run would check less
    than was requested.
    """
    for name in (*IN_FILES, "ssd_resume", "ssd_ssh_config", "ssd_baseline", "ssd_openmetrics"):
        values = [config.getoption(name), config.getini(name) if name in IN_FILES else None]
        if any("\0" in text for text in values if text):
            raise pytest.UsageError(f"{_option(name)} contains a NUL character; write a path without it")
    for name in (*NEED_DEVICES, "ssd_run_dir", "ssd_ssh_config"):
        value = config.getoption(name)
        if name == "ssd_spec" and value:
            value = value.split(",")
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(text, str) and not text.strip() for text in texts):
            raise pytest.UsageError(
                f"{_option(name)}= has no value (is a variable not set?): give one, or leave it out"
            )


def _require_known_ini(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` for an ini value of this package that does not exist.

    pytest only warns, unless its configuration is strict. It has no public interface for what a file contains.
    """
    known = [name for name in config._parser._inidict if name.startswith("ssd_")]
    for name in getattr(config, "_inicfg", ()):
        if name.startswith("ssd_") and name not in known:
            hint = choice(name, known, "settings")
            raise pytest.UsageError(f"the configuration has {name}, which is no setting; {hint}")


def _specs(config: pytest.Config) -> tuple[str, ...]:
    """Return the sheets of the option, else of the ini value, each once; several are separated by commas."""
    given = config.getoption("ssd_spec") or config.getini("ssd_spec")
    return tuple(dict.fromkeys(name for text in given.split(",") if (name := text.strip())))


def _openmetrics(config: pytest.Config) -> Path | None:
    """Return the path, relative to the directory where pytest was called, as for pytest's own files."""
    text = config.getoption("ssd_openmetrics")
    path = config.invocation_params.dir / text if text else None
    if path and not hasattr(config, "workerinput") and not path.parent.is_dir():
        raise pytest.UsageError(f"--ssd-openmetrics={text}: the folder {path.parent} does not exist; create it")
    return path


def _replay(text: str | None) -> StepSequence | None:
    from pytest_ssdqual.qual.integrity.steps import parse

    with usage_error(OSError, ValueError, of=f"--ssd-replay={text}"):
        return parse(Path(text).read_text(encoding="utf-8")) if text else None


def _trace(text: str | None) -> Trace | None:
    from pytest_ssdqual.qual.workload.trace import Trace

    if not text:
        return None
    with (
        usage_error(OSError, ValueError, of=f"--ssd-trace={text}"),
        Path(text).open(encoding="utf-8-sig", errors="replace") as file,
    ):
        return Trace.read(text, file)


def _consents(config: pytest.Config) -> frozenset[Consent]:
    """Return the consents of all options, one for each risk."""
    from pytest_ssdqual.rig.guard.consent import Consent, Risk

    return frozenset(
        consent
        for risk in Risk
        for text in config.getoption(f"ssd_{risk.value}")
        for consent in Consent.parse(risk, text)
    )


def _unchecked(texts: Sequence[str]) -> frozenset[Source]:
    """Return the sources that the user does without; ``pytest.UsageError`` for an unknown name."""
    from pytest_ssdqual.rig.drives.topology import Source

    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    known = [source.value for source in Source]
    if unknown := [name for name in names if name not in known]:
        raise pytest.UsageError(
            f"--ssd-unchecked: {', '.join(unknown)} is no source of the guard; the sources are {', '.join(known)}"
        )
    return frozenset(map(Source, names))


def _arrays(text: str) -> tuple[ArrayRequest, ...]:
    from pytest_ssdqual.plugin.plan.marks import parse_list

    if not text:
        return ()
    with usage_error(ValueError, of=f"--ssd-arrays={text}"):
        return parse_list(text)


def live_port(config: pytest.Config) -> int | None:
    """Return the port of the live page, 0: any free port; None: no page. Raises ``pytest.UsageError``."""
    text = config.getoption("ssd_live")
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) <= LAST_PORT:
        return int(text)
    raise pytest.UsageError(
        f"--ssd-live={text}: write a port from 0 to {LAST_PORT}; for any free one write --ssd-live at the end of the "
        "line or --ssd-live=0"
    )


def notify_stall_s(config: pytest.Config) -> float:
    """Return the seconds without a measurement after which a stall is reported; 0: never."""
    return values.duration_s("ssd_notify_stall", config.getini("ssd_notify_stall"))


def active(config: pytest.Config) -> bool:
    """True if this run has drives and will use them; options such as ``--help`` must not boot a lab."""
    option = config.option
    idle = (
        option.help,
        option.version,
        option.markers,
        option.showfixtures,
        getattr(option, "show_fixtures_per_test", False),
        option.ssd_doctor,
    )
    # An empty inventory name (from a shell variable that is not set) must be an error, not a run without drives.
    given = option.ssd_devices or option.ssd_bays is not None or any(getattr(option, name) for name in NEED_DEVICES)
    return not any(idle) and bool(given)


def print_spec_schema() -> None:
    """Print the JSON Schema of spec files, for ``--ssd-spec-schema``."""
    import json

    from pytest_ssdqual.qual.spec import spec

    print(json.dumps(spec.json_schema(), indent=2, ensure_ascii=False))
