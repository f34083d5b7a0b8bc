"""The generated parts of ``docs/reference.md``: read from the source, so that there is one place to change."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

import pytest_ssdqual
from pytest_ssdqual import command
from pytest_ssdqual.plugin.options import declare

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "reference.md"
PLUGIN = ROOT / "pytest_ssdqual" / "plugin"
#: Set to anything, the tests write the document instead of comparing it.
WRITE = "SSDQUAL_WRITE_REFERENCE"
T = TypeVar("T", bound=ast.stmt)
#: Classes of what fixtures give, and the fixture.
JUDGES = (
    ("judging/sla.py", "Sla", "ssd_sla"),
    ("judging/inspection.py", "Inspection", "ssd_inspection"),
    ("judging/lot.py", "Lot", "ssd_lot"),
    ("searches/explore.py", "Explore", "ssd_explore"),
)


@dataclass(frozen=True)
class Option:
    """One ``--ssd-…``."""

    name: str
    said: Mapping[str, Any]

    @property
    def ini(self) -> str:
        """The ini value that would be its default, by the name that argparse derives from the option's."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def spelled(self) -> str:
        metavar = self.said.get("metavar", "")
        if self.said.get("nargs") == "?":
            return f"{self.name}[={metavar}]"
        return f"{self.name}={metavar}" if metavar else self.name


@dataclass
class Declared:
    """Stands for pytest's parser, and keeps what it is told."""

    options: list[Option] = field(default_factory=list)
    inis: list[tuple[str, str, str, object]] = field(default_factory=list)

    def getgroup(self, *_: str) -> Declared:
        return self

    def addoption(self, name: str, **said: object) -> None:
        self.options.append(Option(name, said))

    def addini(self, name: str, help: str, *, type: str, default: object) -> None:
        self.inis.append((name, help, type, default))


def declared_now() -> Declared:
    found = Declared()
    declare.declare(cast("pytest.Parser", found))
    return found


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def options() -> str:
    found = declared_now()
    inis = {name for name, *_ in found.inis}
    return table(
        ("option", "what it does", "ini value"),
        [
            (f"`{each.spelled}`", _text(each.said["help"]), f"`{each.ini}`" if each.ini in inis else "")
            for each in found.options
        ],
    )


def inis() -> str:
    """Without those that are the default of an option and no more, which the table of options names."""
    rows = [
        (f"`{name}`", "true or false" if kind == "bool" else "text", _default(default), _text(help_))
        for name, help_, kind, default in declared_now().inis
        if not re.fullmatch(r"Default of --ssd-[a-z-]+", help_)
    ]
    return table(("ini value", "type", "default", "what it does"), rows)


def _default(value: object) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else ""


def commands() -> str:
    """``ssdqual`` and each of its subcommands; what is described once stands by its name alone afterwards."""
    (subcommands,) = [each for each in command._parser()._actions if isinstance(each, argparse._SubParsersAction)]
    helps = {each.dest: each.help for each in subcommands._choices_actions}
    rows, described = [], set[tuple[str, str | None]]()
    for name, parser in subcommands.choices.items():
        given = [each for each in parser._actions if not isinstance(each, argparse._HelpAction)]
        said = " ".join(_argument(each) for each in given if not each.option_strings)
        parts = [_text(helps[name])]
        for each in given:
            what = (_argument(each), each.help)
            is_known = what in described or (each.help or "").startswith("the same as --ssd-")
            parts.append(f"`{what[0]}`." if is_known else f"`{what[0]}`: {_text(each.help)}")
            described.add(what)
        rows.append((f"`{f'ssdqual {name} {said}'.rstrip()}`", " ".join(parts)))
    return table(("command", "what it does, and its arguments"), rows)


def _text(said: str | None) -> str:
    """A sentence of plain text, none of which is Markdown."""
    return re.sub(r"([\\*<])", r"\\\1", said or "") + "."


def _argument(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"{action.metavar}…" if action.nargs == "+" else str(action.metavar)
    return f"{action.option_strings[0]}={action.metavar}" if action.nargs != 0 else action.option_strings[0]


def marks() -> str:
    rows = [each.split(": ", 1) for each in declare.MARKERS]
    return table(("mark", "what it says"), [(f"`{name}`", _text(said)) for name, said in rows])


def fixtures() -> str:
    """From the source: pytest wraps the functions, and keeps their text to itself."""
    return "\n\n".join(
        f"### `{each.name}`\n\n`{_given(each)}`{_scope(each)}\n\n{_prose(ast.get_docstring(each))}"
        for each in functions(PLUGIN / "fixtures.py")
        if _decorated(each, "pytest.fixture") and not each.name.startswith("_")
    )


def _given(function: ast.FunctionDef) -> str:
    returned = ast.unparse(function.returns) if function.returns else ""
    return re.sub(r"^Iterator\[(.*)\]$", r"\1", returned)


def _scope(function: ast.FunctionDef) -> str:
    return ", once for the whole session" if "scope='session'" in ast.unparse(function.decorator_list[0]) else ""


def hooks() -> str:
    return "\n\n".join(
        f"### `{each.name}`\n\n`{_signature(each)}`{_first(each)}\n\n{_prose(ast.get_docstring(each))}"
        for each in functions(PLUGIN / "hookspecs.py")
        if _decorated(each, "pytest.hookspec")
    )


def _first(function: ast.FunctionDef) -> str:
    return ", the first answer counts" if "firstresult=True" in ast.unparse(function.decorator_list[0]) else ""


def judges() -> str:
    """Public methods of what fixtures give to judge with."""
    parts = []
    for file, name, fixture in JUDGES:
        (found,) = [each for each in _nodes(PLUGIN / file, ast.ClassDef) if each.name == name]
        methods = [each for each in found.body if isinstance(each, ast.FunctionDef) and each.name == "judge"]
        parts += [f"### `{fixture}.{_signature(each)}`\n\n{_prose(ast.get_docstring(each))}" for each in methods]
    return "\n\n".join(parts)


def names() -> str:
    return "\n\n".join(f"### `{name}`\n\n{_name(name)}" for name in pytest_ssdqual.__all__)


def _name(name: str) -> str:
    found = getattr(pytest_ssdqual, name)
    if inspect.ismodule(found):
        source = Path(str(found.__file__))
        constants = ", ".join(f"`{each}`" for each, _ in commented(source))
        return f"{_prose(found.__doc__).splitlines()[0]}\n\nA module, whose comments say what each is: {constants}."
    module = importlib.import_module(f"pytest_ssdqual.qual.workload.{pytest_ssdqual._MODULES[name]}")
    source = Path(str(module.__file__))
    if inspect.isclass(found):
        rows = [(f"`{each}`", said) for each, said in commented(source, name)]
        return f"{_prose(found.__doc__)}\n\n{table(('field', 'what it is'), rows)}"
    return dict(commented(source))[name]


def commented(source: Path, of_class: str = "") -> list[tuple[str, str]]:
    """Public constants of a module, or fields of one of its classes, each with the ``#:`` comment above it."""
    text = source.read_text()
    body: Sequence[ast.stmt] = ast.parse(text).body
    if of_class:
        (body,) = [each.body for each in body if isinstance(each, ast.ClassDef) and each.name == of_class]
    lines, found = text.splitlines(), []
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(target, ast.Name) or target.id.startswith("_") or not (of_class or target.id.isupper()):
            continue
        spelled = ast.unparse(node) if isinstance(node, ast.AnnAssign) else target.id
        found.append((spelled.replace("'", '"'), _markdown(" ".join(_above(lines, node.lineno - 1)))))
    return found


def _above(lines: Sequence[str], at: int) -> list[str]:
    first = at
    while first and lines[first - 1].strip().startswith("#:"):
        first -= 1
    return [each.strip().removeprefix("#:").strip() for each in lines[first:at]]


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    yield from _nodes(path, ast.FunctionDef)


def _nodes(path: Path, kind: type[T]) -> list[T]:
    return [each for each in ast.parse(path.read_text()).body if isinstance(each, kind)]


def _decorated(function: ast.FunctionDef, by: str) -> bool:
    return any(ast.unparse(each).startswith(by) for each in function.decorator_list)


def _signature(function: ast.FunctionDef) -> str:
    given = ", ".join(ast.unparse(each) for each in function.args.args if each.arg != "self")
    return f"{function.name}({given}) -> {_given(function)}"


def _markdown(text: str) -> str:
    return text.replace("``", "`")


def _prose(docstring: str | None) -> str:
    """reStructuredText as we write it: literal blocks are indented, which Markdown takes for code, too."""
    if not docstring:
        raise ValueError("there is no docstring, so nothing can be documented")
    return _markdown(re.sub(r"::$", ":", inspect.cleandoc(docstring), flags=re.MULTILINE))


#: Each is between two lines of the document.
PARTS = {
    "options": options,
    "ini values": inis,
    "marks": marks,
    "fixtures": fixtures,
    "judges": judges,
    "names": names,
    "hooks": hooks,
    "commands": commands,
}


def ends(part: str) -> tuple[str, str]:
    return f"<!-- begin: {part}, written by the tests -->", f"<!-- end: {part} -->"


def committed(document: str, part: str) -> str:
    begin, end = ends(part)
    return document.split(begin)[1].split(end)[0].strip()


def written(document: str) -> str:
    """The document with all its parts as the source has them."""
    for part, make in PARTS.items():
        begin, end = ends(part)
        before, rest = document.split(begin)
        document = f"{before}{begin}\n\n{make()}\n\n{end}{rest.split(end)[1]}"
    return document


def is_to_be_written() -> bool:
    return bool(os.environ.get(WRITE))
