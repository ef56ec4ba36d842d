"""Where `numpy-dist` begins: with environment variables whose values no setting can have."""

from __future__ import annotations

import importlib
import os
import sys

from numpy_dist.errors import SettingError

# Variables that the doctor leaves out to examine the rest, and what is wrong with each.
SET_ASIDE: dict[str, str] = {}


def main() -> int:
    """Run the command line; returns the exit code. Only the doctor goes on where a variable is wrong."""
    while True:
        try:
            importlib.import_module("numpy_dist.settings")
            break
        except SettingError as error:
            if sys.argv[1:2] != ["doctor"]:
                print(f"numpy-dist: {error}", file=sys.stderr)
                return 2
            variable, why = error.args
            SET_ASIDE[variable] = why
            del os.environ[variable]
    return importlib.import_module("numpy_dist.cli.main").main()
