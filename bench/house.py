"""Size and order of the source tree, as a Markdown table; of several trees side by side.

    python bench/house.py [--measure | --trace FILE ...] [TREE ...]
    python bench/house.py --check

Each TREE is a checkout (default: this one); an older one comes from ``git worktree add DIR COMMIT``. --measure runs one
steady-IOPS test of each tree in the lab and counts the modules that it runs through; it takes a few minutes a tree.
--trace reads what bench/traced_modules.py has recorded, one file a tree. --check, which script/test runs, fails if the
package has more tokens than its budget in pyproject.toml, or if modules of it import each other in a circle.

Size is measured in tokens, because lines and their length depend on the formatter. A token is one of Python's
tokenizer, without comments, line ends and indentation; a string is one token, also an f-string.
"""

from __future__ import annotations

import argparse
import ast
import functools
import json
import os
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

PACKAGE = "pytest_ssdqual"
ROOT = Path(__file__).parents[1]
#: Kinds of tokens that only say how a program is laid out.
LAYOUT = frozenset({"COMMENT", "DEDENT", "ENCODING", "ENDMARKER", "INDENT", "NEWLINE", "NL"})
#: A literal of at least this many words, parted by spaces, is prose: a change of wording breaks its test.
PROSE = 4
#: Methods of pytester that compare lines of output with patterns.
LINE_MATCHERS = frozenset({"fnmatch_lines", "fnmatch_lines_random", "re_match_lines", "re_match_lines_random"})
#: One test of the suites, in the lab: the way of one measurement.
MEASUREMENT = ["--ssd-devices=lab:3", "suites/raid5", "-k", "steady_iops and raid5x3 and randread_4k_qd8"]
#: How many of the modules with the most importers are printed.
MOST = 5


def python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(tree: Path) -> list[Path]:
    """Python modules of the package that have any statement beside a docstring."""
    paths = python_files(tree / PACKAGE)
    return [path for path in paths if any(not isinstance(node, ast.Expr) for node in parsed(path).body)]


def lines(paths: Iterable[Path]) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def words(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def tokens(paths: Iterable[Path]) -> int:
    return sum(_tokens_of_file(path) for path in paths)


def _tokens_of_file(path: Path) -> int:
    count = depth = 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            # Python 3.12 and later divide an f-string from FSTRING_START to FSTRING_END: the end is counted.
            kind = tokenize.tok_name[token.type]
            if kind.endswith("STRING_START"):
                depth += 1
            if kind.endswith("STRING_END"):
                depth -= 1
            if depth == 0 and kind not in LAYOUT:
                count += 1
    return count


def imports(tree: Path) -> dict[str, set[str]]:
    """Modules of the package that each of its modules imports.

    An import counts wherever it stands, also in a function or for annotations only: a reader has to follow it.
    """
    paths = {_dotted(path.relative_to(tree)): path for path in python_files(tree / PACKAGE)}
    return {name: set(_imported(parsed(path), paths.keys())) - {name} for name, path in paths.items()}


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(module: ast.Module, names: Collection[str]) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in names:
                    yield submodule
                elif node.module in names:
                    yield str(node.module)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of several modules: each of them imports, over others, each other one."""
    reached = {name: _reachable(graph, name) for name in graph}
    members = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return sorted((list(circle) for circle in members if len(circle) > 1), key=lambda circle: (-len(circle), circle))


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    return reached


def importers(graph: dict[str, set[str]]) -> list[tuple[str, int]]:
    """The modules that most others import, and by how many."""
    counts = Counter(name for imported in graph.values() for name in imported)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST]


def prose_literals(module: ast.Module) -> list[str]:
    """String literals of four words or more that a test compares with what the program wrote.

    They are literals in an assertion (not in its message), in a ``match=`` pattern, and in the lines that pytester's
    matchers expect. An f-string is one literal, of the words outside its braces. A text that a test assigns to a name
    first, and golden files, are not counted.
    """
    literals = dict(literal for part in _compared(module) for literal in _literals(part))
    return [text for text in literals.values() if len(text.split()) >= PROSE]


def _compared(module: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(module):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "match")
            if isinstance(node.func, ast.Attribute) and node.func.attr in LINE_MATCHERS:
                yield from node.args


def _literals(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Literals of an expression, by their nodes: two of one text are two."""
    if isinstance(node, ast.JoinedStr):
        yield node, "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _literals(child)


def way(tree: Path, trace: Path | None) -> tuple[int, int] | None:
    """Modules and lines that a recorded measurement ran through; None without a record."""
    if trace is None:
        return None
    recorded = [Path(name).parts for name in json.loads(trace.read_text(encoding="utf-8"))]
    paths = [tree.joinpath(*parts[len(parts) - parts[::-1].index(PACKAGE) - 1 :]) for parts in recorded]
    return len(paths), lines(path for path in paths if path.is_file())


def measure(tree: Path, trace: Path) -> None:
    """Run one measurement of a tree in the lab, and record the modules that it runs through."""
    path = os.pathsep.join([str(tree.resolve()), str(ROOT / "bench")])
    plugins = ["-p", "no:cacheprovider", "-p", "traced_modules"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, f"--ssd-run-dir={trace.parent}", *MEASUREMENT]
    environment = os.environ | {"PYTHONPATH": path, "TRACED_MODULES": str(trace)}
    subprocess.run(command, cwd=tree, env=environment, stdout=sys.stderr, check=True)


def budget(tree: Path) -> int | None:
    document = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    allowed: int | None = document.get("tool", {}).get("ssdqual", {}).get("house", {}).get("package_tokens")
    return allowed


def excess(tree: Path) -> str:
    """Return a sentence if the package is larger than its budget, or has none; empty otherwise."""
    present = tokens(python_files(tree / PACKAGE))
    allowed = budget(tree)
    if allowed is None:
        return "pyproject.toml has no package_tokens in [tool.ssdqual.house]: set how many tokens the package may have."
    if present <= allowed:
        return ""
    return (
        f"{PACKAGE} has {present:,} Python tokens, {present - allowed:,} more than its budget of {allowed:,}: "
        "remove as many, or raise package_tokens in pyproject.toml, with the reason in the comment above it."
    )


def faults(tree: Path) -> list[str]:
    """Return what --check fails for, a sentence each."""
    return [sentence for sentence in (excess(tree), *members(tree)) if sentence]


def rows(tree: Path, trace: Path | None = None) -> Iterator[tuple[str, str]]:
    package, tests = python_files(tree / PACKAGE), python_files(tree / "tests")
    size, graph = tokens(package), imports(tree)
    yield "tokens of the package", f"{size:,}"
    yield "their budget", f"{allowed:,}" if (allowed := budget(tree)) else "none"
    yield "tokens a line", f"{size / lines(package):.1f}"
    yield "modules, lines of the package", f"{len(modules(tree))}, {lines(package):,}"
    ran = way(tree, trace)
    yield "modules, lines of one steady-IOPS measurement", f"{ran[0]}, {ran[1]:,}" if ran else "not measured"
    yield "circles of imports", str(len(circles(graph)))
    yield "modules with most importers", ", ".join(f"{_short(name)} {count}" for name, count in importers(graph))
    yield "tokens of tests", f"{tokens(tests):,}"
    yield "prose literals in tests", f"{sum(len(prose_literals(parsed(path))) for path in tests):,}"
    yield "words of README and docs", f"{words([tree / 'README.md', *(tree / 'docs').glob('*.md')]):,}"
    yield "words of docs/decisions.md", f"{words((tree / 'docs').glob('decisions.md')):,}"


def _short(name: str) -> str:
    return name.removeprefix(f"{PACKAGE}.")


def table(trees: Sequence[Path], traces: Sequence[Path]) -> str:
    columns = [dict(rows(tree, trace)) for tree, trace in zip(trees, [*traces, *[None] * len(trees)], strict=False)]
    head = ["", *(tree.resolve().name for tree in trees)]
    body = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body])


def members(tree: Path) -> list[str]:
    """One line for each circle of imports."""
    named = ([_short(name) for name in circle] for circle in circles(imports(tree)))
    return [f"{tree.resolve().name}: circle of {len(circle)}: {', '.join(circle)}" for circle in named]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    parser.add_argument("--trace", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    trees = arguments.trees or [ROOT]
    if arguments.check:
        sys.exit("\n".join(sentence for tree in trees for sentence in faults(tree)) or None)
    with tempfile.TemporaryDirectory() as folder:
        traces = arguments.trace
        if arguments.measure:
            traces = [Path(folder) / f"{number}.json" for number in range(len(trees))]
            for tree, trace in zip(trees, traces, strict=True):
                measure(tree, trace)
        print(table(trees, traces), "", *(line for tree in trees for line in members(tree)), sep="\n")


if __name__ == "__main__":
    main()
