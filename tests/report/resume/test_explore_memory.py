from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.resume.explore_memory import MOST, SearchSubject, Store, StoredFinding
from pytest_ssdqual.report.run_folder.journal import SCHEMA, OtherSchema

ACME = SearchSubject("ACME 9", "F1", "acme")
FOUND = StoredFinding(Workload("randwrite", "64k", 4, sync=True), "p99_latency", "drivex2", is_simplest=True, run="r1")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "found")


def file(store: Store) -> Path:
    (path,) = store.folder.iterdir()
    return path


def test_what_is_kept_is_recalled_and_nobody_else_can_read_it(store: Store) -> None:
    assert store.recall(ACME) == ()
    store.keep(ACME, FOUND)
    ((recalled),) = store.recall(ACME)
    assert (recalled.workload, recalled.claim, recalled.is_simplest) == (FOUND.workload, "p99_latency", True)
    assert recalled.time
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert file(store).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "other",
    [SearchSubject("ACME 8", "F1", "acme"), SearchSubject("ACME 9", "F2", "acme"), SearchSubject("ACME 9", "F1", "b")],
)
def test_another_model_firmware_or_spec_has_findings_of_its_own(store: Store, other: SearchSubject) -> None:
    store.keep(ACME, FOUND)
    assert store.recall(other) == ()
    # Nor under the other's name.
    file(store).rename(store.folder / other.file_name)
    assert store.recall(other) == ()


def test_the_latest_come_first_once_and_up_to_a_bound(store: Store) -> None:
    for depth in range(1, MOST + 3):
        store.keep(ACME, StoredFinding(Workload("randread", "4k", depth), "c", "drivex1", is_simplest=False, run="r"))
    store.keep(ACME, StoredFinding(Workload("randread", "4k", 9), "c", "drivex1", is_simplest=False, run="r2"))
    depths = [each.workload.qd_per_drive for each in store.recall(ACME)]
    assert depths[:3] == [9, MOST + 2, MOST + 1]
    assert len(depths) == len(set(depths)) == MOST


def test_the_last_one_forgotten_leaves_no_file_behind(store: Store) -> None:
    other = Workload("randread", "4k", 2)
    store.keep(ACME, FOUND)
    store.keep(ACME, StoredFinding(other, "c", "drivex1", is_simplest=False, run="r"))
    store.forget(ACME, FOUND.workload)
    assert [each.workload for each in store.recall(ACME)] == [other]
    store.forget(ACME, FOUND.workload)
    store.forget(ACME, other)
    assert list(store.folder.iterdir()) == []


@given(
    st.binary(max_size=300)
    | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["subject", "found", "asked", "rw", "bs"]), inner, max_size=4)
        ),
    ).map(lambda value: json.dumps({"schema": SCHEMA, **value} if isinstance(value, dict) else value).encode())
)
def test_a_damaged_file_is_as_good_as_none(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    store = Store(tmp_path_factory.mktemp("found"))
    (store.folder / ACME.file_name).write_bytes(data)
    assert store.recall(ACME) == ()


@pytest.mark.parametrize("act", [lambda store: store.recall(ACME), lambda store: store.keep(ACME, FOUND)], ids=range(2))
def test_a_file_of_another_schema_is_refused_and_not_replaced(store: Store, act: Callable[[Store], object]) -> None:
    store.keep(ACME, FOUND)
    file(store).write_text(text := file(store).read_text().replace(f'"schema": {SCHEMA}', '"schema": 1'))
    with pytest.raises(OtherSchema, match=rf"\.json .* schema {SCHEMA} "):
        act(store)
    assert file(store).read_text() == text


def test_a_workload_that_could_do_anything_else_is_none(store: Store) -> None:
    store.keep(ACME, FOUND)
    content = json.loads(file(store).read_text())
    content["found"][0]["workload"]["fsync"] = "1 --exec_prerun=reboot"
    file(store).write_text(json.dumps(content))
    assert store.recall(ACME) == ()


def test_a_link_is_not_followed(store: Store, tmp_path: Path) -> None:
    store.keep(ACME, FOUND)
    file(store).rename(tmp_path / "elsewhere.json")
    (store.folder / ACME.file_name).symlink_to(tmp_path / "elsewhere.json")
    assert store.recall(ACME) == ()
    with pytest.raises(OSError, match="is a symbolic link"):
        store.keep(ACME, FOUND)


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "found").write_text("a file")
    with pytest.raises(OSError, match=r"."):
        Store(tmp_path / "found").keep(ACME, FOUND)


@given(st.text(), st.text(), st.text())
def test_a_drive_may_call_itself_anything(model: str, firmware: str, spec: str) -> None:
    name = SearchSubject(model, firmware, spec).file_name
    assert name == Path(name).name
    assert name.isascii()
    assert len(name) < 100
    assert not name.startswith((".", "-"))
