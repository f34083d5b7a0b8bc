"""The shipped suites as their source says: which tests there are, what they ask for, what they judge."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUITES = Path(__file__).parents[3] / "suites"


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """One test function of a suite."""

    #: ``raid5/test_scaling.py``.
    module: str
    name: str
    fixtures: tuple[str, ...]
    #: The claims that its marks ``ssd_promise`` name, and what ``ssd_sla.judge`` or ``ssd_lot.judge`` was given.
    judged: tuple[tuple[str, str], ...]
    statements: int

    def __str__(self) -> str:
        return f"{self.module}::{self.name}"


def shipped() -> Iterator[SuiteTest]:
    """All that judge a product: not the meta suite's and the faults', which test the gate itself."""
    for path in sorted(SUITES.glob("*/test_*.py")):
        if path.parent.name not in ("meta", "faults"):
            yield from _of_module(path)


def _of_module(path: Path) -> Iterator[SuiteTest]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield SuiteTest(
                module=str(path.relative_to(SUITES)),
                name=node.name,
                fixtures=tuple(each.arg for each in node.args.args),
                judged=tuple(_judged(node)),
                statements=sum(not _is_docstring(each) for each in node.body),
            )


def _judged(node: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    marks = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    promises = [each for each in marks if ast.unparse(each.func) == "pytest.mark.ssd_promise"]
    claims = [ast.literal_eval(name) for mark in promises for name in mark.args]
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("ssd_sla.judge", "ssd_lot.judge"):
            (subject,) = call.args
            yield from ((claim, ast.unparse(subject)) for claim in claims)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
