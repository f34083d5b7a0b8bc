"""TOML documents of users: found by path or by shipped name, checked as a whole, every error with its path."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    ModelT = TypeVar("ModelT", bound=BaseModel)


class DocumentError(ValueError):
    """A document cannot be used; ``str()`` has one line per error, each beginning with the file's name."""

    def __init__(self, name: str, errors: Sequence[str]) -> None:
        super().__init__("\n".join(f"{name}: {error}" for error in errors))
        self.name = name
        self.errors = tuple(errors)


def shipped(folder: str) -> tuple[str, ...]:
    """Names of the documents that come with the package, in order."""
    files = resources.files("pytest_ssdqual").joinpath(folder).iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def read(path_or_name: str | Path, folder: str, error: type[DocumentError]) -> tuple[str, dict[str, object]]:
    """File name and content of the document that a user named; ``error`` if there is none or it is not TOML.

    A text without a slash and without ``.toml`` is a shipped name; anything else is a path.
    """
    file = _find(path_or_name, folder, error)
    name = file.name
    try:
        return name, tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as failure:
        raise error(name, [f"cannot be read: {failure.strerror or failure}"]) from failure
    except UnicodeDecodeError as failure:
        raise error(name, ["is not UTF-8 text"]) from failure
    except tomllib.TOMLDecodeError as failure:
        raise error(name, [f"is not TOML: {failure}"]) from failure


def text(path_or_name: str | Path, folder: str) -> str:
    """The document as it is written, for the record of a run that used it; ``DocumentError`` if there is none."""
    return _find(path_or_name, folder, DocumentError).read_text(encoding="utf-8")


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
    return f"{said}, not {given!r}" if isinstance(given, str | int | float | bool) else said[:1].lower() + said[1:]
