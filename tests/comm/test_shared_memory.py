"""The names of MPI's shared memory are removed once all ranks have it."""

from __future__ import annotations

from pathlib import Path

from numpy_dist.comm.shared_memory import unlink_segments


def test_names_are_removed_once(tmp_path: Path) -> None:
    segment, other = tmp_path / "mpich_shm_1_0", tmp_path / "other"
    segment.touch()
    other.touch()
    maps = tmp_path / "maps"
    maps.write_text(
        f"7f00-7f01 rw-s 00000000 00:1a 12    {segment}\n7f02-7f03 rw-s 00000000 00:1a 12    {segment}\n"
        f"7f04-7f05 rw-s 00000000 00:1a 13    {other}\n7f06-7f07 rw-p 00000000 00:00 0 \n"
        f"7f08-7f09 rw-s 00000000 00:1a 14    {tmp_path}/mpich_shm_2_0 (deleted)\n"
    )
    prefix = f"{tmp_path}/mpich_shm_"
    assert unlink_segments(maps, prefix) == [str(segment)]
    assert not segment.exists() and other.exists()
    assert unlink_segments(maps, prefix) == []
    assert unlink_segments(tmp_path / "missing", prefix) == []
