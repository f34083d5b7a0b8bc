"""Notifications of runs: when, how often, and what becomes of one that is not delivered."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from support.fakes.webhook import TOKEN, Webhook

from pytest_ssdqual.plugin.watch import notifier
from pytest_ssdqual.plugin.watch.receivers import Receiver
from pytest_ssdqual.qual.notification import Notification

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


def test_deliveries_keep_their_order_and_have_two_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "RETRY_S", 0.0)
    heard: list[str] = []

    def send(event: Notification) -> None:
        heard.append(event.bay)
        if event.bay == "dut0" or len(heard) == 3:
            raise OSError(f"cannot reach http://h/{TOKEN}")

    watched = controller_notifier(2, Receiver("pager", send))
    for bay in ("dut0", "dut1"):
        watched.reported(bay, (), "lost")
    (complaint,) = watched.complaints()
    assert complaint.startswith("pager ")
    assert "http://…" in complaint
    assert heard == ["dut0", "dut0", "dut1", "dut1"]


def test_receiver_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "DRAIN_S", 0.0)
    never = threading.Event()
    watched = controller_notifier(1, Receiver("slow", lambda event: never.wait(60)))
    watched.ended(0)
    (complaint,) = watched.complaints()
    assert complaint.startswith("slow ")
    never.set()


def controller_notifier(bays: int, receiver: Receiver) -> notifier.Notifier:
    """A notifier of bays without run folders, in a session without hooks."""
    config = SimpleNamespace(hook=SimpleNamespace(pytest_ssdqual_notify=lambda notification: []))
    machines = [f"dut{number}" for number in range(bays)]
    runs = [SimpleNamespace(name=name, journal=None, bay=SimpleNamespace(machine=name)) for name in machines]
    return notifier.Notifier(cast(pytest.Config, config), [receiver], cast(Any, runs), None, 0.0)


CONFTEST = """
    import pathlib
    def pytest_ssdqual_notify(notification):
        with pathlib.Path("heard").open("a") as file:
            file.write(f"{notification.what}\\n")
        if notification.what == "error" and not pathlib.Path("calm").exists():
            raise RuntimeError("a broken hook")
"""
SOME = ("-k", "iops or p99")


def heard(inner: Inner) -> list[str]:
    return (inner.pytester.path / "heard").read_text().split()


@pytest.mark.parametrize("workers", [(), ("-n1",)])
def test_a_run_notifies_its_first_failure_and_its_end_once(
    inner: Inner, promises: str, webhook: Webhook, workers: tuple[str, ...]
) -> None:
    inner.pytester.makeconftest(CONFTEST)
    (inner.pytester.path / "calm").touch()
    notify = f"--ssd-notify={webhook.url}"
    result = inner.run("--ssd-devices=lab:3", promises, *SOME, notify, *workers)
    folder = inner.folder()
    ends = [each for each in webhook.bodies if each["what"] == "end"]
    (end,) = ends
    assert end["exit_status"] == result.ret
    assert end["run_folder"] == str(folder)
    outcomes = [str(each["outcome"]) for each in inner.records("verdict", "observation")]
    assert {name: count for name, count in end["verdicts"].items() if count and name != "error"} == {
        name: outcomes.count(name) for name in set(outcomes)
    }
    assert [each["what"] for each in webhook.bodies] == heard(inner)
    assert [each["what"] for each in webhook.bodies].count("failure") == ("fail" in outcomes)
    for file in folder.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes(), file
    assert "was not notified" not in result.stdout.str()


def test_each_bay_notifies_once_and_says_which_it_is(inner: Inner, promises: str, webhook: Webhook) -> None:
    bays = [f"--ssd-devices=root@{name}:/dev/nvme*" for name in ("dut1", "dut2")]
    inner.run(*bays, promises, "--ssd-protocol=quick", *SOME, f"--ssd-notify={webhook.url}", "-n2")
    failures = [each for each in webhook.bodies if each["what"] == "failure"]
    assert sorted(each["bay"] for each in failures) == ["dut1", "dut2"]
    assert all(each["text"].startswith(f"ssdqual, failure: {each['bay']}: ") for each in failures)
    assert all(each["machine"] == f"root@{each['bay']}" for each in failures)
    assert [each["run_folder"].rpartition("/")[2] for each in failures] == [each["bay"] for each in failures]
    (end,) = [each for each in webhook.bodies if each["what"] == "end"]
    assert end["sentence"].endswith("on dut1, dut2")
    assert webhook.bodies[-1] == end


def test_many_bays_are_no_storm() -> None:
    heard: list[Notification] = []
    watched = controller_notifier(40, Receiver("hook", heard.append))
    for number in range(40):
        for message in ("lost", "another error"):
            watched.reported(f"dut{number}", (), message)
    watched.ended(1)
    assert not watched.complaints()
    *errors, end = heard
    assert [event.bay for event in errors] == [f"dut{number}" for number in range(10)]
    assert errors[0].verdicts["error"] == 1
    assert errors[0].sentence == "lost"
    assert errors[-1].sentence.endswith(notifier.THE_LAST)
    assert end.verdicts["error"] == 80
    assert end.sentence.endswith("and 30 more")


def test_errors_are_notified_once_also_to_a_dead_receiver(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "RETRY_S", 0.0)
    monkeypatch.setenv("SIMULATED_BROKEN", "raid5x3")
    inner.pytester.makeconftest(CONFTEST)
    result = inner.run("--ssd-devices=lab:3", promises, *SOME, f"--ssd-notify=http://127.0.0.1:1/{TOKEN}")
    assert heard(inner) == ["error", "error", "end"]
    assert result.ret == 1
    lines = result.stdout.str()
    assert "ssdqual: http://… was" in lines
    assert "RuntimeError: a broken hook" in lines
    assert {"http://…", "pytest_ssdqual_notify"} == {
        str(each["sentence"]).partition(" was")[0] for each in inner.records("not_notified")
    }
    assert TOKEN not in lines


def test_a_stall_is_notified_once_while_it_lasts(
    inner: Inner, promises: str, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "LATE", 0.0)
    monkeypatch.setenv("SIMULATED_TAKES", "0.6")
    stall = ("-o", "ssd_notify_stall=100 ms", "-o", f"ssd_notify={webhook.url}")
    inner.run("--ssd-devices=lab:3", promises, "-k", "iops and randread", *stall)
    sentences = [each["sentence"] for each in webhook.bodies if each["what"] == "stall"]
    assert sentences
    assert all(each.startswith("raid5x3: ") for each in sentences)
    assert len(set(sentences)) == len(sentences)


def test_a_collection_and_a_refused_run_send_no_notification(inner: Inner, promises: str, webhook: Webhook) -> None:
    refused = inner.refused("--ssd-devices=lab:3", promises, f"--ssd-notify={webhook.url} y{TOKEN}")
    assert "mailto:" in refused
    assert TOKEN not in refused
    refused = inner.refused("--ssd-devices=lab:3", promises, "-o", "ssd_notify_stall=soon")
    assert "ssd_notify_stall=soon" in refused
    inner.run("--ssd-devices=lab:3", promises, "--collect-only", f"--ssd-notify={webhook.url}")
    assert not webhook.bodies
