"""A sixth of the cases, of each function at least one, at one and three ranks, for the default run of the tests."""

from __future__ import annotations

import zlib

import pytest

from numpy_dist.conformance import known_differences
from numpy_dist.conformance.checking.oracle import check
from numpy_dist.conformance.suite import groups

pytestmark = pytest.mark.spmd(ranks=(1, 3))
ONE_OF = 6


def is_sampled(name: str, position: int) -> bool:
    """Whether a case of a group is in the sample: by names, so that it stays when other functions get more cases."""
    return zlib.crc32(f"{name}/{position}".encode()) % ONE_OF == 0 or position == 0


@pytest.mark.parametrize("name", groups())
def test_sample(name: str) -> None:
    for position, case in enumerate(groups()[name]):
        if is_sampled(name, position):
            found = [text for text in check(case) if not known_differences.matching(case, text)]
            assert not found, "\n".join(found)
