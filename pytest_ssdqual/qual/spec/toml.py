"""TOML documents of users: found by path or by shipped name, checked as a whole, every error with its path."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_ssdqual.qual import safe_text

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    ModelT = TypeVar("ModelT", bound=BaseModel)


#: The largest data sheet that is shipped has 40 kB; what is much larger is something else, or has no end.
LARGEST_BYTES = 4 << 20
#: A sentence names all values that were possible.
ERROR_CHARACTERS, MOST_ERRORS = 2000, 100


class DocumentError(ValueError):
    """A document cannot be used; ``str()`` has one line per error, each beginning with the file's name."""

    def __init__(self, name: str, errors: Sequence[str]) -> None:
        # What the file says is quoted in its errors, and a vendor wrote it.
        told = [safe_text.line(error, ERROR_CHARACTERS) for error in errors[:MOST_ERRORS]]
        if len(errors) > MOST_ERRORS:
            told.append(f"and {len(errors) - MOST_ERRORS} more errors")
        super().__init__("\n".join(f"{safe_text.line(name)}: {error}" for error in told))
        self.name = name
        self.errors = tuple(told)


def shipped(folder: str) -> tuple[str, ...]:
    """Names of the documents that come with the package, in order."""
    files = resources.files("pytest_ssdqual").joinpath(folder).iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def read(path_or_name: str | Path, folder: str, error: type[DocumentError]) -> tuple[str, dict[str, object]]:
    """File name and content of the document that a user named; ``error`` if there is none or it is not TOML.

    A text without a slash and without ``.toml`` is a shipped name; anything else is a path.
    """
    file = _find(path_or_name, folder, error)
    return file.name, loads(file.name, _text(file, error), error)


def loads(name: str, written: str, error: type[DocumentError]) -> dict[str, object]:
    """The content of a document that was read already; ``error`` if it is not TOML."""
    try:
        content = tomllib.loads(written)
    except RecursionError as failure:
        raise error(name, ["is nested too deeply"]) from failure
    except ValueError as failure:  # also for a number of thousands of digits
        raise error(name, [f"is not TOML: {failure}"]) from failure
    if errors := list(_unprintable(content, "")):
        raise error(name, errors)
    return content


def text(path_or_name: str | Path, folder: str) -> str:
    """The document as it is written, for the record of a run that used it; ``DocumentError`` if there is none."""
    return _text(_find(path_or_name, folder, DocumentError), DocumentError)


def _text(file: Path | Traversable, error: type[DocumentError]) -> str:
    try:
        with file.open("rb") as opened:
            read = opened.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as failure:  # a path with NUL is a ValueError
        raise error(file.name, [f"cannot be read: {getattr(failure, 'strerror', None) or failure}"]) from failure
    if len(read) > LARGEST_BYTES:
        raise error(file.name, [f"is larger than {LARGEST_BYTES >> 20} MiB"])
    try:
        return read.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as failure:
        raise error(file.name, ["is not UTF-8 text"]) from failure


def _unprintable(value: object, where: str) -> Iterator[str]:
    """Names and sources are printed wherever verdicts are: a terminal must not take them for commands."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _unprintable(each, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _unprintable(each, f"{where}[{number}]")
    elif isinstance(value, str) and not value.replace("\n", " ").replace("\t", " ").isprintable():
        yield f"{where}: has characters that cannot be printed"


def _find(path_or_name: str | Path, folder: str, error: type[DocumentError]) -> Path | Traversable:
    named = str(path_or_name)
    if isinstance(path_or_name, Path) or "/" in named or named.endswith(".toml"):
        return Path(named).expanduser()
    if named not in shipped(folder):
        kinds = ", ".join(shipped(folder))
        raise error(named, [f"is not shipped (there are: {kinds}); for a file of your own give its path"])
    return resources.files("pytest_ssdqual").joinpath(folder, f"{named}.toml")


def checked(model: type[ModelT], name: str, content: dict[str, object], error: type[DocumentError]) -> ModelT:
    """The content as ``model``; ``error`` with all that is wrong with it at once."""
    from pydantic import ValidationError

    try:
        return model.model_validate(content)
    except ValidationError as failure:
        raise error(name, [_sentence(each) for each in failure.errors()]) from failure


def _sentence(detail: ErrorDetails) -> str:
    where = ""
    for step in detail["loc"]:
        where += f"[{step}]" if isinstance(step, int) else f".{step}" if where else step
    return f"{where}: {_words(detail)}" if where else _words(detail)


def _words(detail: ErrorDetails) -> str:
    kind, given = detail["type"], detail["input"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    said = detail["msg"].replace("Input should be", "should be")
    # A whole table would drown the sentence.
    if isinstance(given, int) and abs(given) > 10**40:  # too long to be printed, perhaps for Python itself
        return said
    return f"{said}, not {given!r}" if isinstance(given, str | int | float | bool) else said[:1].lower() + said[1:]
