"""The figures of ``bench/house.py`` on a tree that is small enough to count by hand."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import house
import pytest

FILES = {
    "pytest_ssdqual/__init__.py": '"""Package."""\n',
    "pytest_ssdqual/qual/__init__.py": '"""Room."""\n',
    "pytest_ssdqual/qual/a.py": "# A comment.\n\n\ndef double(x: int) -> int:\n    return 2 * x\n",
    "pytest_ssdqual/qual/b.py": "from pytest_ssdqual.qual import a\n\nY = a.double(1)\n",
    "pytest_ssdqual/report/c.py": "from pytest_ssdqual.qual.a import double\nfrom pytest_ssdqual.qual.b import Y\n",
    "tests/test_a.py": 'def test_a():\n    assert str(1) == "not at all one"\n',
    "docs/a.md": "Three short words.\n",
    "docs/decisions.md": "One decision.\n",
    "README.md": "A drive is judged.\n",
}
#: Docstrings 2, a 14, b 14, c 16.
TOKENS = 46


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    allow(tmp_path, TOKENS)
    return tmp_path


def allow(tree: Path, tokens: int) -> None:
    (tree / "pyproject.toml").write_text(f"[tool.ssdqual.house]\npackage_tokens = {tokens}\n")


def test_table_of_a_small_tree(tree: Path) -> None:
    figures = dict(house.rows(tree))
    assert figures == {
        "tokens of the package": "46",
        "their budget": "46",
        "tokens a line": "3.8",
        "modules, lines of the package": "3, 12",
        "modules, lines of one steady-IOPS measurement": "not measured",
        "circles of imports": "0",
        "modules with most importers": "qual.a 2, qual.b 1",
        "tokens of tests": "12",
        "prose literals in tests": "1",
        "words of README and docs": "9",
        "words of docs/decisions.md": "2",
    }
    assert house.table([tree, tree], []).splitlines()[2] == "| tokens of the package | 46 | 46 |"


def test_f_string_is_one_token(tmp_path: Path) -> None:
    module = tmp_path / "a.py"
    module.write_text("""x = f"{a + b!r:>{width}} of {c['d']} and {f'{e}'}" 'more'  # comment\n""")
    assert house.tokens([module]) == 4


@pytest.mark.parametrize(("budget", "status"), [(TOKENS - 1, 1), (TOKENS, 0), (TOKENS + 1, 0)])
def test_check_fails_above_the_budget(tree: Path, budget: int, status: int) -> None:
    allow(tree, budget)
    done = check(tree)
    assert done.returncode == status
    assert len(done.stderr.splitlines()) == status
    assert ("46" in done.stderr and "45" in done.stderr) == bool(status)


def test_check_fails_without_a_budget(tree: Path) -> None:
    (tree / "pyproject.toml").write_text("[tool.ssdqual]\n")
    done = check(tree)
    assert done.returncode == 1
    assert "package_tokens" in done.stderr


def check(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, house.__file__, "--check", str(tree)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "line",
    [
        "from pytest_ssdqual.report import c",
        "import pytest_ssdqual.report.c",
        "def late() -> None:\n    from pytest_ssdqual.report.c import Y",
        "if TYPE_CHECKING:\n    from pytest_ssdqual.report.c import Y",
    ],
)
def test_circle_over_three_modules(tree: Path, line: str) -> None:
    (tree / "pytest_ssdqual/qual/a.py").write_text(f"{line}\n")
    assert house.circles(house.imports(tree)) == [
        ["pytest_ssdqual.qual.a", "pytest_ssdqual.qual.b", "pytest_ssdqual.report.c"]
    ]
    assert house.members(tree) == [f"{tree.name}: circle of 3: qual.a, qual.b, report.c"]
    allow(tree, 2 * TOKENS)
    done = check(tree)
    assert (done.returncode, done.stderr.splitlines()) == (1, house.members(tree))


def test_circles_are_apart_from_what_only_leads_to_them() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d", "f"}, "f": set[str]()}
    assert house.circles(graph) == [["b", "c"], ["d", "e"]]


def test_name_of_a_package_is_an_import_of_its_init(tree: Path) -> None:
    (tree / "pytest_ssdqual/__init__.py").write_text("from pytest_ssdqual.qual.b import Y\n")
    (tree / "pytest_ssdqual/qual/a.py").write_text("from pytest_ssdqual import Y\n")
    assert house.circles(house.imports(tree)) == [["pytest_ssdqual", "pytest_ssdqual.qual.a", "pytest_ssdqual.qual.b"]]


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ('assert text == "one two three four"', 1),
        ('assert text == "one two three"', 0),
        ('assert "one two three four" in text and "five six seven eight" in text', 2),
        ('assert "one two three four" in text and "one two three four" in other', 2),
        ('assert texts == ["one two three four", *["five six seven eight"]]', 2),
        ('assert text == f"{one} two three four {n} five"', 1),
        ('assert text == f"{one} two {three} four {five} {six}"', 0),
        ('assert text == "one two " "three four"', 1),
        ('assert text, "a message of four words"', 0),
        ('text = "one two three four"', 0),
        ('pytest.raises(ValueError, match="one two three four")', 1),
        ('pytest.raises(ValueError, match=r"one \\d three")', 0),
        ('run(name="one two three four")', 0),
        ('result.stdout.fnmatch_lines(["*one two three four*"])', 1),
    ],
)
def test_prose_literals_of_a_statement(statement: str, number: int) -> None:
    assert len(house.prose_literals(ast.parse(statement))) == number


def test_recorded_way_is_counted_in_the_given_tree(tree: Path, tmp_path: Path) -> None:
    trace = tmp_path / "way.json"
    trace.write_text(json.dumps(["/elsewhere/pytest_ssdqual/qual/b.py", "/elsewhere/pytest_ssdqual/report/c.py"]))
    assert house.way(tree, trace) == (2, 5)
    assert "| modules, lines of one steady-IOPS measurement | 2, 5 |" in house.table([tree], [trace])


def test_measurement_of_a_checkout_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYTEST_SSDQUAL_PART", raising=False)
    monkeypatch.setattr(house, "MEASUREMENT", ["tests/qual/test_units.py", "-k", "kb_is_refused"])
    trace = tmp_path / "way.json"
    house.measure(house.ROOT, trace)
    recorded = json.loads(trace.read_text())
    assert str(house.ROOT / "pytest_ssdqual/qual/units.py") in recorded
    assert not any("/pytest_ssdqual/rig/md/" in name for name in recorded)
