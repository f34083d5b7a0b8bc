"""Size and order of the source tree, as a Markdown table; of several trees side by side.

    python bench/house.py [--trace FILE.json] [TREE ...]

Each TREE is a checkout (default: this one); an older one comes from ``git worktree add DIR COMMIT``. The modules that
one measurement runs through are recorded in the lab and given with --trace, one file a tree:

    TRACED_MODULES=way.json PYTHONPATH=bench pytest -p traced_modules --ssd-devices=lab:3 suites/raid5 \\
        -k 'steady_iops and raid5x3 and randread_4k_qd8'
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PACKAGE = "pytest_ssdqual"
#: Flat lists of one kind, which may be longer than twelve files.
LISTS = frozenset({"charts", "methods", "suites", "scripts", "specs", "protocols"})
#: Words of the private dialect, with the field's word in docs; names of modules, not words, are left out.
DIALECT = re.compile(
    r"\b(told|tells?|said|somebody|nobody|whoever|whatever else|over there|of ours|surroundings|onlookers?|glances?|"
    r"imprints?|sureness|shortening|teller|narrator|inheritance|remembered|heat of|talks?)\b",
    re.IGNORECASE,
)


def modules(tree: Path) -> list[Path]:
    """Python modules of the package that have any statement beside a docstring."""
    found = sorted((tree / PACKAGE).rglob("*.py"))
    return [path for path in found if any(not isinstance(node, ast.Expr) for node in _parsed(path).body)]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines(paths: Iterable[Path]) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def largest_folder(tree: Path) -> tuple[str, int]:
    """The package's folder with the most modules, and their number."""
    counts = Counter(path.parent for path in modules(tree) if not LISTS & {path.parent.name})
    folder, count = counts.most_common(1)[0]
    return str(folder.relative_to(tree)), count


def repeated_classes(tree: Path) -> list[str]:
    """Class names that two modules of the package define."""
    nodes = (node for path in modules(tree) for node in ast.walk(_parsed(path)))
    counts = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    return sorted(name for name, count in counts.items() if count > 1)


def function_lengths(tree: Path) -> list[int]:
    nodes = (node for path in modules(tree) for node in ast.walk(_parsed(path)))
    functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in functions)


def dialect(tree: Path) -> int:
    """Words of the private dialect in the package, the README and docs."""
    texts = [*(tree / PACKAGE).rglob("*.py"), tree / "README.md", *(tree / "docs").glob("*.md")]
    return sum(len(DIALECT.findall(path.read_text(encoding="utf-8"))) for path in texts)


def way(tree: Path, trace: Path | None) -> tuple[int, int] | None:
    """Modules and lines that a recorded run went through; None without a record."""
    if trace is None:
        return None
    files = [Path(each) for each in json.loads(trace.read_text(encoding="utf-8"))]
    parts = [path.parts for path in files]
    found = [tree.joinpath(*each[len(each) - each[::-1].index(PACKAGE) - 1 :]) for each in parts]
    return len(found), lines(path for path in found if path.is_file())


def rows(tree: Path, trace: Path | None = None) -> Iterator[tuple[str, str]]:
    found, lengths, (folder, count), gone = (
        modules(tree),
        function_lengths(tree),
        largest_folder(tree),
        way(tree, trace),
    )
    yield "modules of the package", f"{len(found):,}"
    yield "lines of the package", f"{lines(found):,}"
    yield "modules in the largest flat folder", f"{count} ({folder})"
    yield "modules above 700 lines", str(sum(lines([path]) > 700 for path in found))
    yield "modules below 60 lines", str(sum(lines([path]) < 60 for path in found))
    yield "class names used twice", str(len(repeated_classes(tree)))
    yield "lines of a function, 95th percentile and most", f"{lengths[int(0.95 * len(lengths))]}, {lengths[-1]}"
    yield "words of the private dialect", f"{dialect(tree):,}"
    yield "modules that one measurement runs through", f"{gone[0]}" if gone else "not recorded"
    yield "lines of these", f"{gone[1]:,}" if gone else "not recorded"


def table(trees: Sequence[Path], traces: Sequence[Path]) -> str:
    columns = [dict(rows(tree, trace)) for tree, trace in zip(trees, [*traces, *[None] * len(trees)], strict=False)]
    head = ["", *(tree.resolve().name for tree in trees)]
    body = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    parser.add_argument("--trace", action="append", default=[], type=Path, metavar="FILE")
    given = parser.parse_args()
    print(table(given.trees or [Path(__file__).parents[1]], given.trace))


if __name__ == "__main__":
    main()
