"""All documents: links lead somewhere, and what they name of the plugin exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.documents.reference_tables import ROOT, declared_now
from support.documents.reference_tables import commands as commands_table

from pytest_ssdqual.plugin import fixtures
from pytest_ssdqual.plugin.options import ansible, declare

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GUIDE = ROOT / "docs/README.md"
DECISIONS = ROOT / "docs/decisions.md"
CITED = re.compile(r"(?:decisions\.md\)? |\[)D(\d+)")
#: Of a picture, too; what has a scheme is not ours to look after.
LINK = re.compile(r"!?\[[^\]]*\]\((?!https?:)([^)\s#]*)(#[^)\s]*)?\)")
#: Of the command ``ssdqual`` and of others no option begins so.
OPTION = re.compile(r"(?<![\w-])--ssd-[a-z-]*[a-z]")
INI = re.compile(r"(?<![\w./-])ssd_[a-z_]+")
#: A module or a package of ours, in code: ``rig/fio/jobs.py``, ``qual/stats``.
MODULE = re.compile(r"`((?:pytest_ssdqual|qual|rig|report|live|lab|plugin)/[\w/]+(?:\.\w+)?)`")
NAMES = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS]


def prose(path: Path) -> str:
    """Without code, in which brackets are no links and # begins no heading."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", lambda found: re.sub(r"[\[\]()]", "", found[0]), re.sub(r"(?m)^    .*$", "", text))


def anchors(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def links(path: Path) -> list[tuple[Path, str]]:
    """Files, and the headings in them."""
    return [
        ((path.parent / file).resolve() if file else path, anchor.removeprefix("#"))
        for file, anchor in LINK.findall(prose(path))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for file, anchor in links(ROOT / name):
        assert file.is_file(), f"{name} links to {file}"
        assert file.is_relative_to(ROOT), f"{name} links to {file}, which is not in the repository"
        assert not anchor or anchor in anchors(file), f"{name} links to #{anchor} of {file.name}"


@pytest.mark.parametrize("name", NAMES)
def test_modules_that_are_named_exist(name: str) -> None:
    named = {module.removeprefix("pytest_ssdqual/") for module in MODULE.findall((ROOT / name).read_text())}
    assert {module for module in named if not (ROOT / "pytest_ssdqual" / module).exists()} == set()


def test_the_architecture_names_every_package() -> None:
    named = set(MODULE.findall((ROOT / "docs/architecture.md").read_text()))
    rooms = [path for path in (ROOT / "pytest_ssdqual").iterdir() if (path / "__init__.py").is_file()]
    packages = {path for room in rooms for path in room.iterdir() if (path / "__init__.py").is_file()}
    assert {path.relative_to(ROOT / "pytest_ssdqual").as_posix() for path in packages} <= named


@pytest.mark.parametrize("name", NAMES)
def test_options_ini_values_marks_and_fixtures_named_exist(name: str) -> None:
    text, there = (ROOT / name).read_text(), declared_now()
    assert set(OPTION.findall(text)) <= {each.name for each in there.options}
    named = {each for each in INI.findall(text) if not each.startswith(ansible.LABEL)}
    marks = {re.split(r"\W", line)[0] for line in declare.MARKERS}
    assert named - set(ansible.SSD_VARIABLES) - marks - vars(fixtures).keys() <= {ini for ini, *_ in there.inis}


@pytest.mark.parametrize("name", NAMES)
def test_commands_that_are_named_exist_with_their_options(name: str) -> None:
    for command, said in re.findall(r"(?:^    |`)ssdqual ([a-z]+)([^`\n]*)", (ROOT / name).read_text(), re.MULTILINE):
        there = commands()
        assert set(re.findall(r"--[a-z-]+", said)) <= there[command], f"ssdqual {command}{said}"


#: Commands that have pages of their own.
APART = ("spec", "run", "doctor", "certificate")


def test_options_of_pages_about_the_command_are_the_commands() -> None:
    """``docs/history.md`` is about most of them, ``docs/specs.md`` about specs, ``docs/report.md`` on certificates."""
    named = re.compile(r"(?<![\w-])--(?!ssd-)[a-z][a-z-]*")
    of_specs = commands()["spec"]
    of_runs = set().union(*(options for name, options in commands().items() if name not in APART))
    assert set(named.findall((ROOT / "docs/history.md").read_text())) == of_runs
    of_others = {"--collect-only", "--punch-hole"}  # pytest's and fallocate's
    assert of_specs - of_runs <= set(named.findall((ROOT / "docs/specs.md").read_text())) - of_others <= of_specs
    own = commands()["certificate"] - of_runs
    assert own <= set(named.findall((ROOT / "docs/report.md").read_text()))


def commands() -> dict[str, set[str]]:
    """Options of each subcommand of ``ssdqual``, from the table of all of them."""
    lines = commands_table().splitlines()[2:]
    return {line.split("`")[1].split()[1]: set(re.findall(r"`(--[a-z-]+)", line)) for line in lines}


def test_the_guide_names_every_page_and_the_readme_the_guide() -> None:
    named = {file for file, _ in links(GUIDE)}
    assert {path for path in DOCUMENTS if path != GUIDE} <= named
    assert GUIDE in {file for file, _ in links(ROOT / "README.md")}


def test_the_guide_has_a_part_for_each_reader() -> None:
    headings = re.findall(r"^## (.*)$", GUIDE.read_text(), re.MULTILINE)
    assert headings == ["First steps", "In a lab", "Development"]


def test_every_option_is_named_in_the_users_guide() -> None:
    """In the short table; the long one is in docs/reference.md."""
    table = (ROOT / "docs/using.md").read_text()
    assert [each.name for each in declared_now().options if f"`{each.name}" not in table] == []
    assert [ini for ini, *_ in declared_now().inis if ini not in table] == []


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 900
    for command in ("script/demo", "script/test"):
        assert f"\n    {command} " in text
        assert (ROOT / command).is_file()


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_at_most_120_characters(name: str) -> None:
    """Except tables, generated text, and lines that cannot be broken: commands, and the output of programs."""
    written = re.sub(
        r"^```.*?^```$|<!-- begin.*?<!-- end", "", (ROOT / name).read_text(), flags=re.DOTALL | re.MULTILINE
    )
    lines = written.splitlines()
    unbroken_line = re.compile(r"    | *\||!\[")
    assert [line for line in lines if len(line) > 120 and not unbroken_line.match(line)] == []


def test_decisions_are_numbered_once() -> None:
    numbers = [int(number) for number in re.findall(r"^### D(\d+)\. ", DECISIONS.read_text(), re.MULTILINE)]
    assert len(set(numbers)) == len(numbers)
    assert len(re.findall(r"^### ", DECISIONS.read_text(), re.MULTILINE)) == len(numbers)


def test_decisions_are_grouped_by_package() -> None:
    headings = re.findall(r"^## (.*)$", DECISIONS.read_text(), re.MULTILINE)
    packages = [package for heading in headings for package in heading.split(" and ")]
    places = {package: ROOT / "pytest_ssdqual" / package for package in packages if not (ROOT / package).is_dir()}
    assert [each for each in places.values() if not each.is_dir() and not each.with_suffix(".py").is_file()] == []


def test_decisions_that_are_cited_exist() -> None:
    numbers = set(re.findall(r"^### D(\d+)\. ", DECISIONS.read_text(), re.MULTILINE))
    texts = [path for folder in ("pytest_ssdqual", "bench", "docs", "tests") for path in (ROOT / folder).rglob("*")]
    cited = {
        number for path in texts if path.suffix in (".py", ".md", ".sh") for number in CITED.findall(path.read_text())
    }
    assert cited
    assert cited <= numbers


def test_pictures_are_named_by_a_document_and_small() -> None:
    pictures = set((ROOT / "docs").glob("*.png"))
    shown = {file for path in DOCUMENTS for file, _ in links(path)}
    assert pictures
    assert pictures <= shown
    assert all(path.stat().st_size <= 150_000 for path in pictures)
