"""Declarations of the plugin's options, ini values and marks: their names and help texts, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import pytest

from pytest_ssdqual.plugin.options.values import SHARED_PATH

#: Each line is what ``pytest --markers`` prints.
MARKERS = (
    "ssd_array(level, widths=None, failed=0, most=None, settings=()): the test needs arrays of this RAID level (raid0, "
    "raid1, raid5, raid6, raid10), of every possible width up to the number of drives given, or of these widths, with "
    "this number of failed members; most: of these only so many, both ends among them, of one the widest; settings: "
    "each with these settings of md, e.g. 'c256k-s32768-t8' (chunk, stripe cache, group threads); drive: all drives "
    "side by side, each by itself; ssd_array(default=LIST): a method's arrays, e.g. 'drive,raid5x4,raid0', for which "
    "--ssd-arrays may name others",
    "ssd_workload(*workloads): run the test once for each of these pytest_ssdqual.Workload",
    "ssd_promise(*claims): the claims that the test judges with ssd_sla or ssd_lot, e.g. ssd_promise('p99_latency'); "
    "the plan computes drive time from them, so every test that judges needs this mark",
    "ssd_workload_set(*sets): run the test once for each of these pytest_ssdqual.WorkloadSet, measured as a whole "
    "(fixture ssd_runs)",
    "ssd_rounds(*rounds): measure these pytest_ssdqual.Rounds: all rounds (fixture ssd_rounds), or each cell (ssd_run)",
    "ssd_figures(chained=False): run the test once for each published figure of the spec, under its published "
    "conditions and with its claim; figures of one drive on all drives side by side, those of an array on that array; "
    "chained: only the figures on which limits of arrays rest",
    "ssd_replay(*per_cent): run the test once for each of these speeds of the trace of --ssd-trace, e.g. 100, 150, 200 "
    "for its own speed, one and a half times, and twice; without that option the test does not apply",
    "ssd_published(sheet): the shipped data sheet whose published values are printed beside the measured ones",
)
#: How long a connection may be lost: a short outage passes, and the drives are not worn for long.
RECONNECT = "2 min"
#: Live statistics come every 10 s at least, and return within minutes after a connection was lost.
STALL = "15 min"
#: Without --ssd-protocol: a protocol for acceptance on real drives, a quick one in the lab.
DEFAULT_PROTOCOL, LAB_PROTOCOL = "acceptance", "quick"


#: Ini values that are no mere default of an option: name without ``ssd_``, help, type and default.
POLICIES: tuple[tuple[str, str, Literal["string", "bool", "args", "linelist"], object], ...] = (
    ("bays", "Inventory for --ssd-bay without --ssd-bays", "string", ""),
    ("shared_path", "Default of --ssd-shared-path", "string", "auto"),
    ("reconnect", "Default of --ssd-reconnect", "string", RECONNECT),
    ("expect", "Default of --ssd-expect, unless an inventory has it", "string", ""),
    (
        "members",
        "Measure the bare drives before arrays, to predict arrays and to name the cause of a shortfall",
        "bool",
        True,
    ),
    (
        "measure_unpromised",
        "Measure also what has no limit, as a run needs from which ssdqual spec --from makes a sheet: true or false "
        "(default)",
        "bool",
        False,
    ),
    ("page", "Default of --ssd-page: true or false", "bool", True),
    ("inconclusive", "How to report an inconclusive verdict: error (default) or skip", "string", "error"),
    (
        "require_verdicts",
        "Exit status 5 instead of 0 if a promise of the selected tests was not judged at all: true (default) or false",
        "bool",
        True,
    ),
    (
        "required_claims",
        "The claims that must be judged, e.g. steady_iops p99_latency; default: each claim of the selected tests",
        "args",
        [],
    ),
    (
        "junit_properties",
        "Write evidence as JUnit properties: true or false (for consumers that check the Jenkins schema)",
        "bool",
        True,
    ),
    ("notify", "More receivers like those of --ssd-notify, one a line", "linelist", []),
    (
        "notify_stall",
        "How long a run may measure nothing before it counts as a stall; 0: stalls are not reported",
        "string",
        STALL,
    ),
    (
        "smtp",
        "Mail server for --ssd-notify=mailto: mailto[s]://[USER:PASSWORD@]HOST[:PORT], a URL of apprise, or '$NAME'; "
        "the environment variable SSDQUAL_SMTP comes first; default: sendmail",
        "string",
        "",
    ),
)

#: Options that nearly every run needs, with which ``--help`` begins: name, metavar (none of a flag), help.
FIRST_OPTIONS = (
    (
        "devices",
        "WHERE",
        "Drives to qualify, and to DESTROY all data on: [[USER@]HOST:]PATTERN[,PATTERN...], e.g. '/dev/sd[b-i]' "
        "or 'root@dut:/dev/nvme[0-7]n1'; lab[:N][@RELEASE][,slow=K] for N emulated drives in a VM, e.g. of debian13, "
        "the K-th of them slow; may repeat: drives of another machine are another bay, which runs the same tests at "
        "the same time",
    ),
    (
        "expect",
        "N",
        "Number of drives that each bay must have; with more or fewer the run does not begin; default: the number "
        "in the inventory, ssd_expect, the spec or the baseline, in this order",
    ),
    (
        "spec",
        "SPEC[,SPEC...]",
        "Spec to judge by: a TOML file or a shipped data sheet; of several, each for the drives whose model and "
        "capacity it names; default: the shipped sheet of each drive's model",
    ),
    (
        "wipe",
        "SERIAL[@MARK][,...]",
        "Consent to destroy what these drives carry: a partition table, a file system or other data; with the "
        "mark that a refusal prints, only the content that it listed; serials as refusals spell them, a comma or an @ "
        "in one as \\, and \\@",
    ),
    (
        "resume",
        "RUN",
        "Resume a run that ended too early, in its own folder, and measure only what is missing there: "
        "its folder, the beginning of its name, or last; give all other options as before",
    ),
    (
        "doctor",
        "",
        "Report what this machine and these drives lack for a run, write nothing, and exit: status 0 if a run could "
        "begin, 1 if not, 4 for a wrong request; the same as ssdqual doctor",
    ),
)
#: All others.
OPTIONS = (
    (
        "bays",
        "FILE",
        "Inventory of bays, instead of --ssd-devices: TOML, or Ansible's INI or YAML; the inventory of the ini "
        "value applies only with --ssd-bay",
    ),
    ("bay", "NAME[,NAME...]", "Run only these bays, by name or shell-style pattern, e.g. 'rack7-*'; may repeat"),
    (
        "protocol",
        "PROTOCOL",
        "How to condition and measure: acceptance, intel, intel910, snia, stec; not for acceptance: "
        f"toms_s3500, quick; or a TOML file; default: {DEFAULT_PROTOCOL}, in the lab {LAB_PROTOCOL}",
    ),
    (
        "arrays",
        "LIST",
        "Arrays to run the methods' suites on, e.g. 'drive,raid5x4,raid0': a level without a width uses all "
        "drives, drive is all of them side by side; default: the arrays each method was published for",
    ),
    (
        "shared",
        "SERIAL[,SERIAL...]",
        "Consent to test these drives although they have a second port, through which another host may use them unseen",
    ),
    (
        "configured",
        "SERIAL[,SERIAL...]",
        "Consent to test these drives although fstab or another configuration file of the machine names them",
    ),
    (
        "unreadable",
        "SERIAL[,SERIAL...]",
        "Consent to destroy these drives although some of what they carry cannot be read",
    ),
    (
        "unchecked",
        "SOURCE[,SOURCE...]",
        "Do without these sources of the guard where the machine cannot answer: exports, openers, layers, "
        "signatures, reservations; the refusal says what each would have shown",
    ),
    (
        "read-only",
        "",
        "Write nothing to the drives and take no lease: drives in use need no consent, and only tests that write "
        "nothing run, e.g. suites/inspection",
    ),
    (
        "force-spec",
        "",
        "Judge by the spec although it is for drives of another model or capacity; the differences are recorded",
    ),
    ("mixed", "", "Accept drives of different models or firmware in one run; the run records the differences"),
    (
        "smart-type",
        "[PATTERN=]TYPE",
        "smartctl's option -d, e.g. megaraid,4 or sat, for all drives or those at the paths of a pattern; none: "
        "smartctl cannot open them, so their health is neither read nor judged; may repeat; an inventory's smart_type "
        "comes first",
    ),
    ("ssh-config", "FILE", "OpenSSH configuration file to use instead of the user's own"),
    (
        "shared-path",
        "POLICY",
        "What to do when bays of one run share a controller, an expander or a switch, and so slow each other: "
        "error, warn, ignore, or auto: error under a protocol for acceptance, else warn; default: auto",
    ),
    (
        "reconnect",
        "DURATION",
        "How long the connection to the machine under test may be lost; running commands continue meanwhile, "
        f"and end if it does not come back in time; 0: not at all; default: {RECONNECT}",
    ),
    (
        "wait",
        "DURATION",
        "How long to wait for drives that another run has leased; default: do not wait, report the owner of the lease",
    ),
    ("run-dir", "DIR", "Folder for run folders; default: ssdqual-runs in the root directory"),
    (
        "baseline",
        "RUN",
        "Earlier run that promises in per cent of a baseline are compared with: its folder, the beginning of "
        "its name, or last",
    ),
    (
        "budget",
        "DURATION",
        "Time that the whole run may take, e.g. 8h: the worthiest measurements that fit into it; the tests of the "
        "others, and of what is undecided when it is over, are errors, never a pass; the plan says what is left out",
    ),
    (
        "explore-database",
        "DIR",
        "Folder for the findings of workload searches, with which later searches begin; default: .explore "
        "among the run folders",
    ),
    ("explore-seed", "RUN", "Draw the same workloads as the search of another run: the name of its folder"),
    (
        "replay",
        "FILE",
        "Run only the history of array steps in this file (written by suites/integrity) instead of a search",
    ),
    (
        "power-off",
        "COMMAND",
        "For suites/power_cuts: the command that cuts a drive's power, run on this computer without a shell; {serial}, "
        "{path}, {slot} (the number among the drives of its machine) and {machine} are replaced; one that is the same "
        "for several drives runs once",
    ),
    ("power-on", "COMMAND", "The same to restore the power"),
    (
        "trace",
        "FILE",
        "Replay this trace in suites/trace: fio's iolog (version 2 or 3), text of blkparse, or CSV with the columns "
        "time, offset, size, op; `ssdqual trace FILE` checks and summarises it",
    ),
    ("page", "YES|NO", "Write report.html into the run folder when the run ends; default: yes"),
    (
        "openmetrics",
        "FILE",
        "Write verdicts, figures and health to this file when the run ends, for Prometheus: the textfile "
        "collector of its node_exporter reads files that end in .prom",
    ),
    (
        "live",
        "PORT",
        "Serve a live page of the run on this computer's loopback interface, at the address in the header: "
        "--ssd-live for any free port, --ssd-live=PORT for this one",
    ),
    (
        "notify",
        "URL|mailto:ADDRESS",
        "Report the first broken promise, the first error, a stall and the end of the run: as JSON to this https "
        "URL, as mail to these addresses, to a URL of apprise, or to what an environment variable names ('$NAME'); may "
        "repeat; all but mail by sendmail needs pip install 'pytest-ssdqual[notify]'",
    ),
    ("spec-schema", "", "Print the JSON Schema of spec files, for editors, and exit"),
)
#: Options that may repeat.
REPEATED = ("devices", "wipe", "bay", "shared", "configured", "unreadable", "unchecked", "smart-type", "notify")
#: What else pytest has to know of an option.
MORE: Mapping[str, Mapping[str, Any]] = {
    "shared-path": {"choices": SHARED_PATH, "type": str.lower},
    "page": {"choices": ("yes", "no"), "type": str.lower},
    "live": {"nargs": "?", "const": "0"},
}


def declare(parser: pytest.Parser) -> None:
    """Declare the options and ini values; no other effects."""
    _declare(parser.getgroup("ssdqual", "storage qualification"), FIRST_OPTIONS)
    _declare(parser.getgroup("ssdqual-more", "storage qualification, further options"), OPTIONS)
    for name in ("spec", "protocol", "arrays", "budget", "run-dir", "explore-database"):
        parser.addini(f"ssd_{name.replace('-', '_')}", f"Default of --ssd-{name}", type="string", default="")
    for name, text, kind, default in POLICIES:
        parser.addini(f"ssd_{name}", text, type=kind, default=default)


def _declare(group: pytest.OptionGroup, options: Iterable[tuple[str, str, str]]) -> None:
    for name, metavar, text in options:
        kind: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
        if name in REPEATED:
            kind |= {"action": "append", "default": []}
        group.addoption(f"--ssd-{name}", help=text, **kind, **MORE.get(name, {}))
