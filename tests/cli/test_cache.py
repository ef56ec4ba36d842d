"""`numpy-dist cache`: what is there, and removing it."""

import json
import os
import subprocess
import sys

import pytest

from numpy_dist.backends.store import Store
from numpy_dist.cli import cache
from numpy_dist.cli.main import main
from numpy_dist.settings import config


@pytest.fixture
def store(tmp_path):
    with config(CACHE_DIR=tmp_path / "kernels", CACHE_SIZE="3MiB"):
        made = Store(config.CACHE_DIR, config.CACHE_SIZE)
        made.write("a" * 64, bytes(2000))
        made.write_failure("b" * 64, "no")
        yield made


def test_info(store, capsys):
    assert main(["cache", "info"]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown == {"directory": store.directory, "kernels": "1", "size": "2.1 KiB of 3.0 MiB"}


def test_info_as_json(store, capsys):
    assert main(["cache", "info", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"directory": store.directory, "kernels": 1, "bytes": store.usage().bytes, "limit": 3 << 20} | {
        "problem": None
    }


def test_info_of_a_folder_that_is_not_used(store, capsys):
    os.chmod(store.directory, 0o777)
    assert main(["cache", "info"]) == 0
    assert "\nnot used   " in (said := capsys.readouterr().out) and "others can write" in said


def test_clear(store, capsys):
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 2 files from {store.directory}\n"
    assert os.listdir(store.directory) == []
    assert main(["cache", "info"]) == 0


def test_clear_says_what_it_could_not_remove(store, capsys, monkeypatch):
    monkeypatch.setattr(Store, "_remove", lambda self, name: False)
    assert main(["cache", "clear"]) == 1
    assert "1 kernels are left" in capsys.readouterr().out


def test_an_action_is_needed(capsys):
    with pytest.raises(SystemExit):
        main(["cache"])
    assert "info" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB"), (3 << 50, "3072.0 TiB")]
)
def test_sizes(count, text):
    assert cache._size(count) == text


def test_the_environment_names_the_directory(tmp_path):
    environment = {**os.environ, "NUMPY_DIST_CACHE_DIR": str(tmp_path), "NUMPY_DIST_CACHE_SIZE": "1KiB"}
    command = [sys.executable, "-m", "numpy_dist", "cache", "info", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == {"directory": str(tmp_path), "kernels": 0, "bytes": 0, "limit": 1024} | {
        "problem": None
    }
