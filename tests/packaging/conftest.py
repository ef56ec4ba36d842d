"""A copy of the repository: building and installing write into the folder, where another test may do the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository without what is hidden or was built."""
    folder = tmp_path_factory.mktemp("copy") / "source"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
    return folder
