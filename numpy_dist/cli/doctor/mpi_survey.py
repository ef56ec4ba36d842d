"""A child of `numpy-dist doctor`: the MPI library and the launchers at hand, each as a line of JSON.

The library comes first: a launcher that does not answer then costs the launchers only.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from numpy_dist.cli import library
from numpy_dist.errors import LauncherError

LIBRARY_PATIENCE = 3.0  # seconds; loading one takes a tenth of a second


def main() -> None:
    """Print the library or the problem with it, then the launchers."""
    try:
        print(json.dumps({"library": asdict(library.find_library(LIBRARY_PATIENCE))}), flush=True)
    except LauncherError as problem:
        print(json.dumps({"problem": str(problem)}), flush=True)
    print(json.dumps([asdict(found) for found in library.find_launchers()]))


if __name__ == "__main__":
    main()
