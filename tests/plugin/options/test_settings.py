from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.reference_tables import declared_now

from pytest_ssdqual.plugin.bay.bay import Bay
from pytest_ssdqual.plugin.options import values
from pytest_ssdqual.plugin.options.device_address import LAB_DRIVES, NAME, Devices, bay_names, parse_devices, pools
from pytest_ssdqual.plugin.options.settings import NEED_DEVICES
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.rig.machine.ssh import SshTarget

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

OPTIONS = (
    "--ssd-devices=WHERE", "--ssd-spec=SPEC", "--ssd-protocol=PROTOCOL", "--ssd-wipe=SERIAL[@MARK][,...]",
    "--ssd-shared=SERIAL[,SERIAL...]", "--ssd-configured=SERIAL[,SERIAL...]", "--ssd-unreadable=SERIAL[,SERIAL...]",
    "--ssd-unchecked=SOURCE[,SOURCE...]",
    "--ssd-run-dir=DIR", "--ssd-ssh-config=FILE", "--ssd-arrays=LIST", "--ssd-resume=RUN",
    "--ssd-baseline=RUN",
    "--ssd-reconnect=DURATION", "--ssd-wait=DURATION", "--ssd-budget=DURATION",
    "--ssd-explore-database=DIR", "--ssd-explore-seed=RUN", "--ssd-replay=FILE",
    "--ssd-page=YES|NO", "--ssd-openmetrics=FILE", "--ssd-live=PORT",
    "--ssd-bays=FILE", "--ssd-bay=NAME[,NAME...]", "--ssd-shared-path=POLICY",
    "--ssd-power-off=COMMAND", "--ssd-power-on=COMMAND", "--ssd-trace=FILE",
    "--ssd-expect=N", "--ssd-notify=URL|mailto:ADDRESS",
)  # fmt: skip
INI = (
    "ssd_spec (string)", "ssd_protocol (string)", "ssd_arrays (string)", "ssd_run_dir (string)", "ssd_inconclusive (",
    "ssd_junit_", "ssd_reconnect (string)", "ssd_explore_database (string)", "ssd_page (bool)",
    "ssd_bays (string)", "ssd_shared_path (string)", "ssd_expect (string)", "ssd_require_verdicts (bool)",
    "ssd_required_claims (args)",
    "ssd_notify (linelist)", "ssd_notify_stall (string)", "ssd_smtp (string)",
)  # fmt: skip


def test_help_lists_everything(inner: Inner) -> None:
    text = inner.run("--help").stdout.str()
    assert "storage qualification:" in text
    assert [name for name in (*OPTIONS, *INI) if name not in text] == []
    assert set(re.findall(r"--ssd-[a-z-]+(?==[A-Z])", text)) == {each.split("=")[0] for each in OPTIONS}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("soon", ".*10 s.*, or 0"), ("2 days", ""), ("2 h", "write at most 1 h"), ("5", ""),
    ],
)  # fmt: skip
def test_how_long_a_connection_may_be_lost_is_a_duration(text: str, sentence: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"^--ssd-reconnect={text}: {sentence}"):
        values.reconnect_s(text)


@pytest.mark.parametrize("option", ["--ssd-wait=long", "--ssd-reconnect=long"])
def test_a_duration_that_is_none_is_refused(inner: Inner, option: str) -> None:
    assert inner.refused("--ssd-devices=/dev/sdb", option).startswith(f"{option}: ")


#: Options that a session without drives may have.
OF_ANY_SESSION = {
    "--ssd-devices", "--ssd-doctor", "--ssd-explore-database", "--ssd-explore-seed", "--ssd-page", "--ssd-run-dir",
    "--ssd-spec-schema", "--ssd-ssh-config",
}  # fmt: skip


@pytest.mark.parametrize("option", ["--ssd-wait=1 h", "--ssd-wipe=S1", "--ssd-live=0", "--ssd-read-only"])
def test_an_option_of_a_run_needs_drives(inner: Inner, option: str) -> None:
    assert inner.refused(option).startswith(f"{option.partition('=')[0]} needs drives: ")


def test_every_other_option_is_one_of_a_run() -> None:
    of_run = {f"--{name.replace('_', '-')}" for name in NEED_DEVICES}
    assert {each.name for each in declared_now().options} == OF_ANY_SESSION | of_run


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("90 s", 90.0), ("1 min", 60.0)])
def test_the_bay_carries_it_to_every_worker(text: str, seconds: float) -> None:
    target = SshTarget("dut7", patience_s=values.reconnect_s(text))
    assert from_plain(Bay, json.loads(json.dumps(plain(Bay(target, ()))))).target == target
    assert target.patience_s == seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lab", Devices(lab=LAB_DRIVES)),
        ("lab:3", Devices(lab=3)),
        ("lab:3,slow=3", Devices(lab=3, slow=3)),
        ("lab:3@debian11", Devices(lab=3, release="debian11")),
        ("lab@debian13", Devices(lab=LAB_DRIVES, release="debian13")),
        ("lab@debian13:/dev/sdb", Devices(host="lab@debian13", patterns=("/dev/sdb",))),
        ("lab:3@debian13,slow=1", Devices(lab=3, slow=1, release="debian13")),
        ("/dev/sd[b-i]", Devices(patterns=("/dev/sd[b-i]",))),
        ("/dev/sdb,/dev/sdc,", Devices(patterns=("/dev/sdb", "/dev/sdc"))),
        ("dut7:/dev/sdb", Devices(host="dut7", patterns=("/dev/sdb",))),
        ("root@dut7.lab-2.example:/dev/sdb", Devices(host="root@dut7.lab-2.example", patterns=("/dev/sdb",))),
        ("root@[fe80::1%eth0]:/dev/sdb", Devices(host="root@fe80::1%eth0", patterns=("/dev/sdb",))),
        ("lab:/dev/sdb", Devices(host="lab", patterns=("/dev/sdb",))),
        (
            "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
            Devices(patterns=("/dev/disk/by-path/pci-0000:00:1f.2-ata-1",)),
        ),
    ],
)
def test_where_drives_are(text: str, expected: Devices) -> None:
    assert parse_devices(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lab:3,slow=4", "slow=4 is none of the drives 1 to 3"),
        ("lab:3,slow=0", "slow=0 is none of the drives 1 to 3"),
        ("lab:3,fast=1", "write lab:N with a number of drives, e.g. lab:8"),
        ("lab:0", "the lab emulates 1 to 24 drives, not 0"),
        ("lab:99", "the lab emulates 1 to 24 drives, not 99"),
        ("lab:-1", "the lab emulates 1 to 24 drives, not -1"),
        ("lab:3@debian10", "the lab has no release 'debian10': write debian11, debian12 or debian13"),
        ("lab@", "the lab has no release '': write debian11, debian12 or debian13"),
        ("lab:x", "write lab:N with a number of drives, e.g. lab:8"),
        ("lab:", "write lab:N with a number of drives, e.g. lab:8"),
        ("sdb", "with patterns that begin with /dev/"),
        ("", "with patterns that begin with /dev/"),
        ("/dev/sdb,sdc", "with patterns that begin with /dev/"),
        ("dut7:", "with patterns that begin with /dev/"),
        ("-oProxyCommand=x:/dev/sdb", "'-oProxyCommand=x' is not a host name"),
        ("a b:/dev/sdb", "'a b' is not a host name"),
        ("dut;reboot:/dev/sdb", "'dut;reboot' is not a host name"),
    ],
)
def test_what_is_no_place(text: str, sentence: str) -> None:
    with pytest.raises(pytest.UsageError) as refused:
        parse_devices(text)
    said = str(refused.value)
    assert said.startswith(f"--ssd-devices={text}: ")
    assert sentence in said
    assert "\n" not in said


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_a_sentence(text: str) -> None:
    try:
        devices = parse_devices(text)
    except pytest.UsageError as error:
        assert str(error).startswith(f"--ssd-devices={text}: ")  # noqa: PT017
        return
    assert devices.lab or all(pattern.startswith("/") for pattern in devices.patterns)
    assert not (devices.host or "").startswith("-")


def test_patterns_of_one_machine_are_one_pool() -> None:
    given = [parse_devices("dut7:/dev/sdb"), parse_devices("dut7:/dev/sdc,/dev/sdd")]
    assert pools(given) == [Devices(host="dut7", patterns=("/dev/sdb", "/dev/sdc", "/dev/sdd"))]


def test_every_machine_is_a_bay_of_its_own() -> None:
    given = ["root@dut2:/dev/sdb", "lab:2", "/dev/sdx", "root@DUT2:/dev/sdc", "lab:/dev/sdb"]
    found = pools(parse_devices(each) for each in given)
    assert found == [
        Devices(host="root@dut2", patterns=("/dev/sdb", "/dev/sdc")),
        Devices(lab=2),
        Devices(patterns=("/dev/sdx",)),
        Devices(host="lab", patterns=("/dev/sdb",)),
    ]
    assert bay_names(each.machine for each in found) == ["dut2", "lab", "localhost", "lab_2"]


@pytest.mark.parametrize(
    ("machines", "names"),
    [
        (["root@dut1.example", "fe80::1%eth0", "::1"], ["dut1.example", "fe80__1_eth0", "1"]),
        (["a:b", "a%b", "A_b"], ["a_b", "a_b_2", "A_b_3"]),
        (["_-_"], ["bay"]),
        (["x" * 80, "x" * 90], ["x" * 64, "x" * 58 + "_2"]),
    ],
)
def test_a_bay_is_called_by_its_host(machines: list[str], names: list[str]) -> None:
    assert bay_names(machines) == names


@given(st.lists(st.text(min_size=1, max_size=70) | st.sampled_from(["a_2", "A_2", "a"]), max_size=8))
def test_names_of_bays_are_names_and_none_is_there_twice(machines: list[str]) -> None:
    names = bay_names(machines)
    assert [each for each in names if not NAME.fullmatch(each)] == []
    assert len({each.casefold() for each in names}) == len(machines)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ("--ssd-devices=root@dut7:/dev/sdb", "--ssd-devices=admin@dut7:/dev/sdc"),
            "--ssd-devices has two addresses of one machine, root@dut7 and admin@dut7: write the same one both times "
            "to make it one bay",
        ),
        (
            ("--ssd-devices=localhost:/dev/sdb", "--ssd-devices=/dev/sdc"),
            "--ssd-devices has two addresses of one machine, localhost and this computer without ssh: write the same "
            "one both times to make it one bay",
        ),
        (
            ("--ssd-devices=lab:3", "--ssd-devices=lab:4"),
            "--ssd-devices=lab may be given only once: write the number of drives, e.g. lab:8; for several labs write "
            "an inventory, --ssd-bays=FILE",
        ),
        (("--ssd-devices=dut7:/dev/sdb", "--ssd-bay=dut"), "--ssd-bay=dut: no bay has this name; there are dut7"),
        (("--ssd-bays=",), "--ssd-bays= has no value (is a variable not set?): give one, or leave it out"),
        (("--ssd-bays=x.toml",), "--ssd-bays: x.toml: cannot be read: No such file or directory"),
        (
            ("--ssd-bays=x.toml", "--ssd-devices=lab:3"),
            "--ssd-bays and --ssd-devices both name drives: give only one of them",
        ),
        (
            ("--ssd-devices=lab:3", "-o", "ssd_shared_path=maybe"),
            "ssd_shared_path must be auto, error, warn or ignore, not 'maybe'",
        ),
        (
            ("--ssd-devices=lab:3", "-o", "ssd_inconclusive=pass"),
            "ssd_inconclusive must be error or skip, not 'pass'",
        ),
    ],
)
def test_what_does_not_go_together(inner: Inner, args: tuple[str, ...], sentence: str) -> None:
    assert inner.refused(*args) == sentence


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_wrong_option_is_said_once(inner: Inner, workers: tuple[str, ...]) -> None:
    assert inner.refused("--ssd-devices=sdb", *workers).count("--ssd-devices=sdb") == 1
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_ini_values_are_the_defaults_of_options(inner: Inner, promises: str) -> None:
    ini = "-o", "ssd_spec=acme.toml", "-o", "ssd_protocol=quick", "-o", "ssd_run_dir=kept"
    result = inner.run("--ssd-devices=/dev/nvme*", *ini, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*, protocol quick *"])
    result = inner.run("--ssd-devices=/dev/nvme*", *ini, "--ssd-protocol=intel", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*, protocol intel"])
    inner.run("--ssd-devices=/dev/nvme*", *ini, "-k", "scaling and randread")
    assert (inner.pytester.path / "kept").is_dir()


def test_a_misspelt_ini_value_is_refused(inner: Inner, promises: str) -> None:
    told = inner.refused("--ssd-devices=lab:3", promises, "-o", "strict=false", "-o", "ssd_expcet=8")
    assert "ssd_expcet" in told
    assert "mean 'ssd_expect'?" in told


@pytest.mark.parametrize(
    ("option", "meant"), [("--ssd-protocol=aceptance", "acceptance"), ("--ssd-spec=intel-s350-480gb", "intel-")]
)
def test_a_misspelt_name_of_a_document_is_guessed(inner: Inner, promises: str, option: str, meant: str) -> None:
    assert f"did you mean {meant}" in inner.refused("--ssd-devices=lab:3", option)


@pytest.mark.parametrize("devices", [(), ("--ssd-devices=/dev/nothing-like-this",)], ids=["idle", "drives"])
def test_the_schema_of_specs_is_printed_and_nothing_else_is_done(
    pytester: pytest.Pytester, devices: tuple[str, ...]
) -> None:
    pytester.makepyfile("def test_it(): assert False")
    result = pytester.runpytest_subprocess("--ssd-spec-schema", *devices)
    assert result.ret == pytest.ExitCode.OK
    schema = json.loads(result.stdout.str())
    assert schema["title"] == "pytest-ssdqual spec"
    assert {"product", "figure", "promise"} <= set(schema["properties"])
    assert not (pytester.path / "ssdqual-runs").exists()


@pytest.mark.parametrize("option", ["--ssd-expect", "--ssd-spec", "--ssd-notify", "--ssd-run-dir"])
def test_an_option_without_a_value_is_refused(inner: Inner, promises: str, option: str) -> None:
    refusal = inner.refused("--ssd-devices=lab:3", f"{option}=" + ("," if option == "--ssd-spec" else ""))
    assert refusal.startswith(f"{option}= has no value ")
