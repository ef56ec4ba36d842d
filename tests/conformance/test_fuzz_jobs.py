"""Jobs of the fuzzer: a rank that crashes or hangs is a finding, and the next program runs in a new job."""

from __future__ import annotations

import pytest

from numpy_dist.conformance import command
from numpy_dist.conformance.fuzz.job import CRASH, HANG, PARTED, FuzzJob
from numpy_dist.conformance.fuzz.program import RandomProgram

MAKE, OURS = "v1 = array(a(5), 1)", "type(v1) is np.ndarray or "
HERE = "import numpy_dist; rank = numpy_dist.asarray([1.0]).comm.rank"


@pytest.mark.slow
def test_crashes_and_hangs_are_found() -> None:
    with FuzzJob(2, {"NUMPY_DIST_MIN_SHARD_BYTES": "0"}, patience=30) as job:
        crash = job.attempt(RandomProgram((MAKE, OURS + "os.kill(os.getpid(), 11)")))
        assert crash is not None and crash.kind == CRASH and "Segmentation fault" in crash.text
        assert job.attempt(RandomProgram((MAKE, "v2 = v1 + 1", "check(v2.sum() > 1e9)"))) is None
        parted = job.attempt(
            RandomProgram((MAKE, HERE, "ours = type(v1) is not np.ndarray; v1 = 0; ours and rank and check(1)"))
        )
        assert parted is not None and parted.kind == PARTED
        assert job.starts == 2
        job.stop()
        job.patience = 3
        hang = job.attempt(RandomProgram((MAKE, OURS + "[None for _ in iter(int, 1)]")))
        assert hang is not None and hang.kind == HANG and "<statement 1>" in hang.text


@pytest.mark.slow
def test_the_command(capsys: pytest.CaptureFixture) -> None:
    assert command.main(["--fuzz", "--programs", "3", "--seed", "1000", "--ranks", "1,2", "--tiers", "never"]) == 0
    output = capsys.readouterr().out
    assert "1 rank: 3 programs in" in output and "2 ranks: 3 programs in" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--fuzz --seed x", "--fuzz takes a number as its --seed, not 'x'"),
        ("--minutes 3", "--minutes and --programs are about --fuzz"),
        ("--programs 3", "--minutes and --programs are about --fuzz"),
        ("--fuzz --tiers often", "argument --tiers: invalid choice"),
    ],
)
def test_options_that_mean_nothing(words: str, message: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        command.main(words.split())
    assert message in capsys.readouterr().err
