"""The settings: their three forms, their checks, and their cost."""

import contextvars
import os
import pickle
import pydoc
import subprocess
import sys
import threading

import pytest

from numpy_dist.errors import RankError
from numpy_dist.settings import NAMES, Settings, config


def test_the_names_are_the_documented_ones():
    assert set(NAMES) == {
        "BACKEND", "FALLBACK", "MIN_SHARD_BYTES", "NUM_THREADS", "CACHE_DIR", "COMPILE", "TRANSPORT", "MEMORY_BUDGET",
        "CHECK", "TIMEOUT", "ON_TIMEOUT", "TRACEBACK", "CACHE_SIZE", "PLUGINS", "REPORT", "AT_ONCE", "COMPILE_AFTER",
        "PROFILE", "ADVICE", "WEIGHTS", "RANK_ORDER",
    }  # fmt: skip


def test_defaults():
    fresh = Settings({})
    assert (fresh.BACKEND, fresh.FALLBACK, fresh.COMPILE, fresh.TRANSPORT) == ("auto", "warn", "auto", "auto")
    assert (fresh.MIN_SHARD_BYTES, fresh.NUM_THREADS, fresh.MEMORY_BUDGET) == (262144, 0, 0)
    assert (fresh.CHECK, fresh.TIMEOUT, fresh.ON_TIMEOUT) == ("off", 0.0, "report")
    assert os.path.isabs(fresh.CACHE_DIR)
    assert fresh.CACHE_SIZE == 256 * 2**20


def test_weights():
    assert Settings({"NUMPY_DIST_WEIGHTS": "2, 1,1"}).WEIGHTS == (2.0, 1.0, 1.0)
    assert Settings({"NUMPY_DIST_WEIGHTS": "1,1"}).WEIGHTS == Settings({}).WEIGHTS == ()
    assert Settings({"NUMPY_DIST_WEIGHTS": " Measured"}).WEIGHTS == "measured"
    with config(WEIGHTS=[1, 0.5]) as settings:
        assert settings.WEIGHTS == (1.0, 0.5)
    for wrong in ("1,0", "a", [1, -1], [True], 3, "nan,1"):
        with pytest.raises(ValueError, match="WEIGHTS=.*positive number for each rank"):
            config(WEIGHTS=wrong)


def test_environment():
    fresh = Settings({"NUMPY_DIST_FALLBACK": "Error", "NUMPY_DIST_MEMORY_BUDGET": "1.5 GiB", "NUMPY_DIST_TIMEOUT": ""})
    assert (fresh.FALLBACK, fresh.MEMORY_BUDGET, fresh.TIMEOUT) == ("error", 3 * 2**29, 0.0)
    with pytest.raises(ValueError, match="NUMPY_DIST_FALLBACK.*'loud'.*warn, error, silent"):
        Settings({"NUMPY_DIST_FALLBACK": "loud"})


def test_a_process_reads_its_environment():
    code = "from numpy_dist.settings import config; print(config.MIN_SHARD_BYTES)"
    environ = {**os.environ, "NUMPY_DIST_MIN_SHARD_BYTES": "4K"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, timeout=60)
    assert done.stdout == b"4096\n"


def test_blocks_nest_and_restore():
    before = config.snapshot()
    block = config(MIN_SHARD_BYTES=0)
    with block as inside:
        assert inside is config
        with config(MIN_SHARD_BYTES=7, FALLBACK="silent"), block:
            assert (config.MIN_SHARD_BYTES, config.FALLBACK) == (0, "silent")
            assert config.snapshot()["FALLBACK"] == "silent"
        assert (config.MIN_SHARD_BYTES, config.FALLBACK) == (0, before["FALLBACK"])
    assert config.snapshot() == before
    with pytest.raises(KeyError), config(CHECK="on"):
        raise KeyError
    assert config.snapshot() == before


def test_blocks_belong_to_their_context_and_assignments_to_the_process():
    seen = {}
    fresh_context = contextvars.Context()
    before = config.MEMORY_BUDGET
    try:
        with config(MEMORY_BUDGET=3):
            thread = threading.Thread(target=fresh_context.run, args=(lambda: seen.update(n=config.MEMORY_BUDGET),))
            config.MEMORY_BUDGET = 5
            thread.start()
            thread.join(10)
            assert config.MEMORY_BUDGET == 3
        assert seen == {"n": 5}
        assert config.MEMORY_BUDGET == 5
    finally:
        config.MEMORY_BUDGET = before


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("AT_ONCE", "auto", "auto"),
        ("AT_ONCE", "off", 0),
        ("AT_ONCE", "64 KiB", 65536),
        ("CHECK", True, "on"),
        ("CHECK", "off", "off"),
        ("MEMORY_BUDGET", "auto", 0),
        ("MEMORY_BUDGET", "2GiB", 2**31),
        ("MEMORY_BUDGET", " 10 k ", 10240),
        ("MIN_SHARD_BYTES", "100", 100),
        ("NUM_THREADS", "auto", 0),
        ("NUM_THREADS", "4", 4),
        ("TIMEOUT", "2.5", 2.5),
        ("TIMEOUT", "off", 0.0),
        ("TRANSPORT", "MPI-GPU", "mpi-gpu"),
    ],
)
def test_values_are_parsed(name, value, parsed):
    with config(**{name: value}):
        assert getattr(config, name) == parsed
        assert type(getattr(config, name)) is type(parsed)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AT_ONCE", "soon"),
        ("BACKEND", "torch"),
        ("FALLBACK", None),
        ("MIN_SHARD_BYTES", -1),
        ("MIN_SHARD_BYTES", "many"),
        ("MIN_SHARD_BYTES", "auto"),
        ("MIN_SHARD_BYTES", 1.5),
        ("MEMORY_BUDGET", "2GX"),
        ("NUM_THREADS", True),
        ("NUM_THREADS", "-2"),
        ("CACHE_DIR", ""),
        ("CACHE_DIR", b"x"),
        ("COMPILE", "always"),
        ("CHECK", 1),
        ("PLUGINS", ""),
        ("PLUGINS", "a b"),
        ("REPORT", "maybe"),
        ("TIMEOUT", "nan"),
        ("TIMEOUT", -0.5),
        ("TIMEOUT", "soon"),
    ],
)
def test_a_bad_value_names_the_setting_and_the_value(name, value):
    before = config.snapshot()
    for attempt in (lambda: config(**{name: value}), lambda: setattr(config, name, value)):
        with pytest.raises(ValueError) as caught:
            attempt()
        assert name in str(caught.value) and repr(value) in str(caught.value)
    assert config.snapshot() == before


def test_a_bad_name():
    for attempt in (lambda: config.SPEED, lambda: config(SPEED=1), lambda: setattr(config, "SPEED", 1)):
        with pytest.raises(AttributeError, match="SPEED.*MIN_SHARD_BYTES"):
            attempt()


def test_it_shows_itself():
    assert "FALLBACK='warn'" in repr(Settings({}))
    assert set(NAMES) <= set(dir(config))


def test_a_read_calls_one_function():
    """The cost of a read is a bound on calls, not a time: hot paths read MIN_SHARD_BYTES."""
    calls = []
    profile = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event == "call" else None)
    try:
        config.MIN_SHARD_BYTES  # noqa: B018
    finally:
        sys.setprofile(profile)
    assert len(calls) <= 1


def test_a_rank_error_travels():
    error = pickle.loads(pickle.dumps(RankError("rank 2 has ended", 2)))
    assert (str(error), error.rank) == ("rank 2 has ended", 2)


LATE = """
import warnings
import numpy_dist as nd
from numpy_dist.comm.simulated import run_simulated
warnings.simplefilter("error", nd.SettingWarning)
nd.config.COMPILE = "never"  # before the first array
with nd.config(COMPILE="first"):
    x = nd.ones(1_000_000)
def refused(action):
    try:
        action()
    except nd.SettingWarning as warning:
        return str(warning)
    raise AssertionError("no warning")
def block(**values):
    with nd.config(**values):
        nd.ones(8)
assert "COMPILE='auto' has no effect" in refused(lambda: block(COMPILE="auto"))
assert "NUMPY_DIST_BACKEND" in refused(lambda: block(BACKEND="numpy"))
assert "NUM_THREADS=3" in refused(lambda: setattr(nd.config, "NUM_THREADS", 3))
block(COMPILE=nd.config.COMPILE, FALLBACK="silent", MIN_SHARD_BYTES=0)  # no other value, or one that is always read
with nd.config(BACKEND="null"):
    run_simulated(2, lambda: nd.ones(1_000_000))  # new ranks
try:
    with nd.config(COMPILE="auto"):
        raise KeyError
except KeyError:
    pass
"""


def test_settings_that_come_too_late_warn():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()


def test_help_describes_every_setting():
    """``help(numpy_dist.config)``: what each is for, and its default."""
    text = pydoc.plain(pydoc.render_doc(config))
    for name in NAMES:
        setting = vars(Settings)[name]
        described = text.partition(f" |  {name}\n")[2].partition("\n")[0]
        assert setting.documentation in described and "Default: " in described, name
    assert text.index("Attributes") < text.index("Raises")
