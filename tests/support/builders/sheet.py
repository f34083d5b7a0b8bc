"""Spec files of tests: a product that exists only there, read the way a user's file is."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec, toml
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.spec.toml import DocumentError
from pytest_ssdqual.qual.workload.workload import Workload

#: A sheet that publishes figures of every depth: 300 I/Os a second.
EVERY_DEPTH = Path(__file__).parents[2] / "data" / "specs" / "every-depth.toml"

PRODUCT = """
[product]
name = "ACME 9"
models = ["ACME-9*", "QEMU NVMe Ctrl"]
"""


def lab_with_every_depth(folder: Path) -> str:
    """The option for the lab's sheet with figures of every depth: its arrays have limits without measured members."""
    text = toml.text("ssdqual-sm300", "specs")
    assert text.count("queue_depths = [32]") == 4
    path = folder / "lab-every-depth.toml"
    path.write_text(text.replace("queue_depths = [32]", "queue_depths = [1, 2, 4, 8, 16, 32, 64]"), encoding="utf-8")
    return f"--ssd-spec={path}"


def load(tmp_path: Path, text: str) -> Spec:
    """The spec of a file with this text."""
    path = tmp_path / "acme.toml"
    path.write_text(text, encoding="utf-8")
    return spec.load(path)


def loaded(text: str) -> Spec:
    """The same of a file that is gone afterwards."""
    with TemporaryDirectory() as folder:
        return load(Path(folder), text)


def bound(of: Spec, claim: str, geometry: Geometry | str, workload: Workload) -> float | None:
    """The bound of its limit there, if it has one."""
    array = Geometry.parse(geometry) if isinstance(geometry, str) else geometry
    limit = of.limit(Claim(claim), array, workload)
    return limit.bound if limit else None


def errors(text: str) -> list[str]:
    """What is wrong with it, one line each, without the file's name."""
    with pytest.raises(DocumentError) as caught:
        loaded(text)
    lines = str(caught.value).splitlines()
    assert all(line.startswith("acme.toml: ") for line in lines)
    return [line.removeprefix("acme.toml: ") for line in lines]


def promise(**given: object) -> str:
    """One ``[[promise]]``; numbers bare, all else in quotes."""
    return "[[promise]]\n" + _keys(given)


def figure(**given: object) -> str:
    """One ``[[figure]]`` with a source."""
    return "[[figure]]\n" + _keys({"source": "sheet", **given})


def _keys(given: dict[str, object]) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in given.items()]
    return "\n".join(lines) + "\n\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return str(value) if isinstance(value, int | float) else f'"{value}"'
