"""Build the site of the documentation in all its versions: ``python docs/versions.py FOLDER [--base /]``.

Each tag ``v1.2.3``, and what lies here as ``dev``, becomes a folder of its own; ``versions.json`` is what the switcher
in the head of each page reads, and ``index.html`` leads to the newest version. A warning is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = "dev"


def releases(tags: Iterable[str]) -> list[str]:
    """The versions that are tagged, the newest first."""
    found = [match[1] for tag in tags if (match := re.fullmatch(r"v(\d+(?:\.\d+)+)", tag))]
    return sorted(found, key=lambda version: [int(number) for number in version.split(".")], reverse=True)


def switcher(versions: list[str], base: str) -> list[dict[str, object]]:
    """What the switcher shows: what lies here, and the releases."""
    shown: list[dict[str, object]] = [{"name": f"{HERE} (not released)", "version": HERE, "url": f"{base}{HERE}/"}]
    for n, version in enumerate(versions):
        name = f"{version} (newest)" if n == 0 else version
        shown.append({"name": name, "version": version, "url": f"{base}{version}/", "preferred": n == 0})
    return shown


def build(source: Path, version: str, base: str, into: Path) -> None:
    """Build one version of the site from a tree of files."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    environment |= {"NUMPY_DIST_DOCS_VERSION": version, "NUMPY_DIST_DOCS_BASE": base}
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(into / version)]
    command += ["-d", str(into.parent / f"{into.name}-doctrees" / version)]
    subprocess.run(command, cwd=source, env=environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--base", default="/", help="the path below which the site is served (default: /)")
    options = parser.parse_args()
    into, base = options.folder.resolve(), f"/{options.base.strip('/')}/".replace("//", "/")
    done = subprocess.run(["git", "tag", "--list"], cwd=ROOT, capture_output=True, text=True)
    versions = releases(done.stdout.split())  # none outside of a repository
    build(ROOT, HERE, base, into)
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            packed = subprocess.run(["git", "archive", f"v{version}"], cwd=ROOT, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
            build(Path(folder), version, base, into)
    (into / "versions.json").write_text(json.dumps(switcher(versions, base), indent=2) + "\n")
    newest = versions[0] if versions else HERE
    lead = f'<!doctype html><meta http-equiv="refresh" content="0; url={newest}/index.html">\n'
    (into / "index.html").write_text(lead)


if __name__ == "__main__":
    main()
