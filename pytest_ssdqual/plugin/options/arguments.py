"""Checks of command line arguments other than drives: paths of tests, and files that pytest writes at the end.

The checks run before a machine is reached: a run of days must not end with a file that cannot be written, and no lab
boots for tests that do not exist. The checks create nothing.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.options import other_plugins

#: Options of pytest and its plugins that name an output: destination, option, file or folder.
OUTPUTS = (
    ("xmlpath", "--junitxml", "file"),
    ("ssd_openmetrics", "--ssd-openmetrics", "file"),
    ("htmlpath", "--html", "file"),
    ("allure_report_dir", "--alluredir", "folder"),
)


def require(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` with everything that is wrong."""
    if devices := _devices(config):
        raise pytest.UsageError(_unquoted(devices))
    if wrong := [*_missing(config), *_not_writable(config), *other_plugins.repeating(config), *_planned_only(config)]:
        raise pytest.UsageError("\n".join(wrong))


def _planned_only(config: pytest.Config) -> Iterator[str]:
    """Yield an error if no test will run for a reason that the command line does not show, but a JUnit file is due."""
    typed = {"--collect-only", "--collectonly", "--co"} & {str(each) for each in config.invocation_params.args}
    if config.option.collectonly and not typed and config.getoption("xmlpath", None):
        yield (
            "--collect-only comes from PYTEST_ADDOPTS or addopts, so no test would run, and the file of --junitxml "
            "would have none: remove it there, or type it"
        )


def _paths(config: pytest.Config) -> Sequence[str]:
    """Return the positional arguments, if any were typed."""
    return config.args if config.args_source is config.ArgsSource.ARGS else ()


def _devices(config: pytest.Config) -> list[str]:
    """Return positional arguments that are devices: the shell expanded the pattern of ``--ssd-devices``.

    No test is below /dev, so what is there is meant as a drive even if it is none.
    """
    return [
        each
        for each in _paths(config)
        if each.startswith("/dev/") or _is_block_device(config.invocation_params.dir / each)
    ]


def _is_block_device(path: Path) -> bool:
    try:
        return stat.S_ISBLK(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _unquoted(devices: Sequence[str]) -> str:
    many = f"{len(devices)} devices" if len(devices) > 1 else "a device"
    return (
        f"{devices[0]}{' … ' + devices[-1] if len(devices) > 1 else ''}: {many} given as tests, because a shell "
        "expands a pattern without quotes. Quote the pattern: --ssd-devices='/dev/sd[b-i]'"
    )


def _missing(config: pytest.Config) -> Iterator[str]:
    """Yield an error for each path that does not exist, in pytest's words; pytest itself checks them later."""
    for each in _paths(config):
        name = re.split(r"::|\[", each, maxsplit=1)[0]
        if os.path.exists(config.invocation_params.dir / name):  # noqa: PTH110 (false, not an error, of a bad name)
            continue
        if not config.option.pyargs:
            yield f"file or directory not found: {each}"
        elif not _is_module(name):
            yield f"module or package not found: {each}"


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (AttributeError, ImportError, ValueError):
        return False


def _not_writable(config: pytest.Config) -> Iterator[str]:
    for name, option, kind in OUTPUTS:
        if text := config.getoption(name, None):
            path = Path(config.invocation_params.dir, os.path.expanduser(os.path.expandvars(text)))  # noqa: PTH111
            if why := _objection(path, kind):
                yield f"{option}={text}: {why}"


def _objection(path: Path, kind: str) -> str:
    """Return why the path cannot be written. Missing folders above it are fine: pytest and its plugins create them."""
    if path.is_dir() != (kind == "folder") and path.exists():
        return "a folder; name a file in it" if path.is_dir() else "not a folder"
    if path.exists():
        return "" if os.access(path, os.W_OK) else "no permission to write it"
    above = next(each for each in path.parents if each.exists() or each.is_symlink())
    if not above.is_dir():
        return f"{above} is not a folder"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"no permission to write into {above}"
