"""The levels of imports in each package, and a failure where one has more than MOST of them, or a cycle.

A level is one further than the deepest that is imported; what imports nothing of its package is on the first. The
modules and the packages that lie in a package count, and imports anywhere in a file, also in functions and for types
only. The whole, `numpy_dist`, counts with its own modules: its packages are the layers of pyproject.toml.

Usage: ``python .ci/levels.py [PACKAGE ...]``; for the packages that are named it prints what is on each level.
"""

from __future__ import annotations

import sys

import grimp

ROOT, MOST = "numpy_dist", 8


def imports_within(graph: grimp.ImportGraph, package: str) -> dict[str, set[str]]:
    """What each member of a package imports of the others."""
    members = {name for name in graph.find_children(package) if package != ROOT or not graph.find_children(name)}
    inside = {module: name for name in members for module in {name} | graph.find_descendants(name)}
    found: dict[str, set[str]] = {name: set() for name in members}
    for module, name in inside.items():
        imported = graph.find_modules_directly_imported_by(module)
        found[name] |= {inside[other] for other in imported if other in inside} - {name}
    return found


def levels(imports: dict[str, set[str]]) -> list[list[str]]:
    """The members on each level; the last is incomplete where there is a cycle.

    Raises
    ------
    ValueError
        For a cycle.
    """
    found: list[list[str]] = []
    left = dict(imports)
    while left:
        ready = sorted(name for name, others in left.items() if not others & left.keys())
        if not ready:
            raise ValueError(f"a cycle among {', '.join(sorted(left))}")
        found.append(ready)
        for name in ready:
            del left[name]
    return found


def main(named: list[str]) -> int:
    """Print the levels of all packages; 1 if one is beyond what is allowed."""
    graph = grimp.build_graph(ROOT)
    failed = False
    for package in sorted(name for name in graph.modules if graph.find_children(name)):
        try:
            found = levels(imports_within(graph, package))
        except ValueError as problem:
            print(f"{package}: {problem}")
            failed = True
            continue
        bad = len(found) > MOST
        failed |= bad
        print(f"{package:40} {sum(map(len, found)):3} members {len(found):2} levels{f', above {MOST}' if bad else ''}")
        if package in named or bad:
            for number, names in enumerate(found, 1):
                print(f"    {number}: {', '.join(name.rpartition('.')[2] for name in names)}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
