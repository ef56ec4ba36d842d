"""Files of other formats: what the libraries themselves write is read part by part, and they read what is written."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.comm.detect import get_communicator
from numpy_dist.formats.zarr import chunks_of

pytestmark = pytest.mark.spmd
NEEDS = ("h5py", "zarr", "pyarrow", "xarray")
MATRIX = np.arange(600.0).reshape(30, 20)
LINE = np.arange(101, dtype=np.int32)
INDICES = (
    np.s_[...],
    np.s_[3:9],
    np.s_[4, 5],
    np.s_[-1],
    np.s_[::-2, 3:],
    np.s_[..., 2],
    np.s_[5:5],
    np.s_[[1, 2]],
    np.s_[None, 3],
    MATRIX[:, 0] > 300,
)


def plain(x):
    return x.gather() if isinstance(x, nd.DistArray) else x


def on_rank_0(work):
    """Let rank 0 write a file, for which the others wait."""
    comm = get_communicator()
    comm.barrier()
    if comm.rank == 0:
        work()
    comm.barrier()


def hdf5(path, chunks=None, **options):
    import h5py

    with h5py.File(path, "w") as file:
        file.attrs["title"] = "a file"
        file.create_dataset("u", data=MATRIX, chunks=chunks, **options).attrs["unit"] = "m"
        file["group/line"] = LINE
        file["group"].attrs["note"] = "of the group"
        file["scalar"] = np.float32(3)
        file["big"] = LINE.astype(">i8")


def zarr_of(version):
    def write(path):
        import zarr

        group = zarr.create_group(path, zarr_format=version, attributes={"title": "a file"})
        group.create_array("u", data=MATRIX, chunks=(7, 6), attributes={"unit": "m"})
        group.create_group("group", attributes={"note": "of the group"}).create_array("line", data=LINE, chunks=(10,))

    return write


FILES = {
    "hdf5": (hdf5, "x.h5"),
    "hdf5 in compressed chunks": (lambda path: hdf5(path, (7, 6), compression="gzip", shuffle=True), "x.h5"),
    "zarr 2": (zarr_of(2), "x.zarr"),
    "zarr 3": (zarr_of(3), "x.zarr"),
    "npz": (lambda path: np.savez(path, u=MATRIX, **{"group/line": LINE}), "x.npz"),
    "compressed npz": (lambda path: np.savez_compressed(path, u=MATRIX, **{"group/line": LINE}), "x.npz"),
    "fortran npz": (lambda path: np.savez(path, u=np.asfortranarray(MATRIX), **{"group/line": LINE}), "x.npz"),
    "compressed fortran npz": (
        lambda path: np.savez_compressed(path, u=np.asfortranarray(MATRIX), **{"group/line": LINE}),
        "x.npz",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_parts_of_what_others_have_written(kind, tmp_path):
    write, name = FILES[kind]
    path = tmp_path / name
    on_rank_0(lambda: write(str(path)))
    with nd.open(path) as file:
        u = file["u"]
        assert isinstance(u, nd.StoredArray) and u.shape == (30, 20) and u.dtype == MATRIX.dtype and u.nbytes == 4800
        assert "u: shape (30, 20)" in repr(file) and name in repr(u)
        for key in INDICES:
            found, expected = u[key], MATRIX[key]
            assert isinstance(found, nd.DistArray) == isinstance(expected, np.ndarray)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(plain(found), expected)
        for split in (0, 1):
            np.testing.assert_array_equal(plain(nd.asarray(u, split=split)), MATRIX)
        assert nd.asarray(u, np.float32).dtype == np.float32
        assert isinstance(np.asarray(u), np.ndarray) and (np.asarray(u) == MATRIX).all()
        for made in (np.sin(u), u[...] * 2, np.add(u, u), np.concatenate([u, u])):
            assert isinstance(made, nd.DistArray)
        line = file["group"]["line"][...]
        assert line.dtype == LINE.dtype
        np.testing.assert_array_equal(plain(line), LINE)
        if "npz" not in kind:
            assert file.attrs["title"] == "a file" and u.attrs["unit"] == "m"
            assert dict(file["group"].attrs) == {"note": "of the group"}
        if "hdf5" in kind:
            assert float(file["scalar"][()]) == 3 and file["scalar"][...].shape == ()
            np.testing.assert_array_equal(plain(file["big"][...]), LINE)
        with pytest.raises(KeyError, match="no array 'v', but"):
            file["v"]
        for key, error in (
            (np.s_[30], "out of bounds"),
            (np.s_[0, 0, 0], "too many indices"),
            (np.s_[..., ...], "single"),
        ):
            with pytest.raises(IndexError, match=error):
                u[key]


def test_one_array(tmp_path):
    on_rank_0(lambda: np.save(tmp_path / "x.npy", np.asfortranarray(MATRIX)))
    x = nd.open(tmp_path / "x.npy")
    assert x.name == "" and len(x) == 30 and x.ndim == 2 and x.size == 600
    np.testing.assert_array_equal(plain(x[2:7, 1:5]), MATRIX[2:7, 1:5])
    np.testing.assert_array_equal(plain(nd.asarray(x, split=0)), MATRIX)
    with pytest.raises(TypeError, match="no truth value"):
        bool(x)


@pytest.mark.parametrize("group", [11, 50])
def test_columns_of_parquet(group, tmp_path, monkeypatch):
    import pyarrow
    import pyarrow.parquet

    from numpy_dist.formats import parquet

    monkeypatch.setattr(parquet, "_BATCH", 8)  # rows that are decoded at once, of groups of any length

    columns = {
        "real": np.arange(50.0),
        "whole": np.arange(50, dtype=np.int16),
        "date": np.arange(50).astype("M8[s]"),
        "missing": [None if i % 7 == 0 else i for i in range(50)],
        "text": [str(i) for i in range(50)],
    }
    table = pyarrow.table(columns)
    on_rank_0(lambda: pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=group))
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet")  # the format has no seconds
    with nd.open(tmp_path / "x.parquet") as file:
        assert list(file) == list(columns)
        for name in columns:
            expected = table.column(name).to_numpy()
            found = file[name][5:40]
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(plain(found), expected[5:40])


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
def test_columns_of_every_type(missing, tmp_path):
    """What one column is does not keep the others from being read."""
    import pyarrow
    import pyarrow.parquet

    dates = np.arange(30).astype("M8[D]")
    columns = {
        "category": pyarrow.array([f"c{i % 3}" for i in range(30)]).dictionary_encode(),
        "codes": pyarrow.array(np.arange(30) % 4).dictionary_encode(),
        "zone": pyarrow.array(dates.astype("M8[us]")).cast(pyarrow.timestamp("us", tz="Asia/Tokyo")),
        "date": pyarrow.array(dates),
        "time": pyarrow.array(np.arange(30)).cast(pyarrow.time64("us")),
        "lasts": pyarrow.array(np.arange(30).astype("m8[ms]")),
        "half": pyarrow.array(np.arange(30, dtype=np.float16)),
        "huge": pyarrow.array(np.arange(30, dtype=np.uint64) + 2**63),
        "flag": pyarrow.array(np.arange(30) % 2 == 0),
        "bytes": pyarrow.array([b"a\0b"] * 30),
        "nothing": pyarrow.nulls(30),
    }
    if missing:
        kept = pyarrow.array([None if i % 7 == 0 else i for i in range(30)])
        columns = {name: column.take(kept) for name, column in columns.items()}
    on_rank_0(lambda: pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet", row_group_size=8))
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet")
    with nd.open(tmp_path / "x.parquet") as file:
        for name in columns:
            column = table.column(name)
            expected = column.cast(getattr(column.type, "value_type", column.type)).to_numpy()
            for part in (slice(None), slice(5, 23)):
                found = file[name][part]
                assert found.dtype == expected.dtype, name
                np.testing.assert_array_equal(plain(found), expected[part])


@pytest.mark.parametrize("suffix", [".h5", ".hdf5", ".npz", ".zarr", ".parquet"])
def test_the_libraries_read_what_is_saved(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    given = {"u": MATRIX, "columns": MATRIX, "group/line": LINE, "single": np.complex64(1j), "empty": np.zeros((0, 3))}
    if suffix == ".parquet":
        given = {"a": MATRIX[:, 0].copy(), "b": LINE[:30]}
    for _ in range(2):  # the second takes the place of the first
        arrays = {name: nd.asarray(x, split=1) if name == "columns" else nd.asarray(x) for name, x in given.items()}
        nd.save(path, arrays)
        assert os.listdir(tmp_path) == [path.name]
        for name, found in read_by_library(path).items():
            assert found.dtype == given[name].dtype
            np.testing.assert_array_equal(found, given[name])
    with nd.open(path) as file:
        assert set(file) == set(given)
        for name, x in file.items():
            np.testing.assert_array_equal(plain(x[...]), given[name])


def test_datasets_of_every_kind(tmp_path):
    """Those that lie in the file as in memory, which each rank writes its part of, and others."""
    kinds = ["?", "i1", ">u2", "f2", ">f8", "g", "c8", ">c16", "S3", [("a", "u1"), ("b", ">f4")]]
    given = {
        str(number): np.arange(1, 241).astype("i8").astype(kind).reshape(12, 20) for number, kind in enumerate(kinds)
    }
    given["turned"] = np.arange(6000.0).reshape(2, 50, 60).transpose(2, 0, 1)
    nd.save(tmp_path / "x.h5", {name: nd.asarray(x) for name, x in given.items()})
    found = read_by_library(tmp_path / "x.h5")
    assert list(found) == sorted(given)
    for name, x in given.items():
        assert found[name].dtype == x.dtype
        np.testing.assert_array_equal(found[name], x)


def read_by_library(path):
    """The arrays of a file, as the format's own library reads them."""
    if path.suffix == ".zarr":
        import zarr

        group = zarr.open_group(path, mode="r")
        return {name: item[...] for name, item in group.members(max_depth=None) if isinstance(item, zarr.Array)}
    if path.suffix == ".npz":
        with np.load(path) as file:
            return dict(file)
    if path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        return {name: table.column(name).to_numpy() for name in table.column_names}
    import h5py

    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def test_links_in_an_hdf5_file(tmp_path):
    """A dataset is found by each of its names, one of another file, too; links may lead nowhere, or round."""
    import h5py

    def write():
        with h5py.File(tmp_path / "other.h5", "w") as other:
            other["group/far"] = MATRIX
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["group/x"] = LINE
            file["hard"] = file["group/x"]
            file["group/round"] = file["group"]
            file["soft"] = h5py.SoftLink("/group/x")
            file["group/up"] = h5py.SoftLink("/")
            file["folder"] = h5py.SoftLink("/group")
            file["far"] = h5py.ExternalLink("other.h5", "/group")
            file["lost"] = h5py.SoftLink("/nothing")
            file["gone"] = h5py.ExternalLink("nothing.h5", "/x")
            file["no/dataspace"] = h5py.Empty("f8")

    on_rank_0(write)
    with nd.open(tmp_path / "x.h5") as file:
        assert list(file) == ["far/far", "folder/x", "group/x", "hard", "soft"]
        for name, x in file.items():
            np.testing.assert_array_equal(plain(x[...]), MATRIX if name == "far/far" else LINE)


def test_one_zarr_array_in_chunks_that_fit_the_shards(tmp_path):
    import zarr

    x = np.arange(480_000.0).reshape(1200, 400)
    nd.save(tmp_path / "x.zarr", nd.asarray(x, split=0))
    made = zarr.open_array(tmp_path / "x.zarr", mode="r")
    assert (made[...] == x).all() and not (1200 // get_communicator().size) % made.chunks[0]
    np.testing.assert_array_equal(plain(nd.open(tmp_path / "x.zarr")[7:90]), x[7:90])


@pytest.mark.parametrize(
    "shape, boxes, aligned",
    [
        ((1000, 1000), [((0, 500), (0, 1000)), ((500, 1000), (0, 1000))], True),
        ((1001, 1000), [((0, 501), (0, 1000)), ((501, 1001), (0, 1000))], True),
        ((1001, 1000), [((0, 334), (0, 1000)), ((334, 668), (0, 1000)), ((668, 1001), (0, 1000))], True),
        ((1000003,), [((0, 500002),), ((500002, 1000003),)], True),
        ((100003,), [((0, 33335),), ((33335, 66669),), ((66669, 100003),)], False),
        ((7,), [((0, 4),), ((4, 7),)], False),
        ((1000, 1000), None, False),
        ((5000, 5000), [((0, 2500), (0, 5000)), ((2500, 5000), (0, 5000))], True),
        ((), [()], True),
    ],
)
def test_chunks(shape, boxes, aligned):
    chunks, fits = chunks_of(shape, 8, boxes)
    assert (
        fits == aligned and len(chunks) == len(shape) and all(1 <= c <= n for c, n in zip(chunks, shape, strict=True))
    )
    assert 8 * np.prod(chunks, dtype=int) <= 1 << 23
    if fits:
        for box in boxes:
            for (lo, hi), c, n in zip(box, chunks, shape, strict=True):
                assert lo % c == 0 and (hi % c == 0 or hi == n)


def test_what_cannot_be_saved(tmp_path):
    x = nd.asarray(MATRIX)
    with pytest.raises(ValueError, match="have names"):
        nd.save(tmp_path / "x.h5", x)
    with pytest.raises(ValueError, match="not empty"):
        nd.save(tmp_path / "x.h5", {"": x})
    with pytest.raises(ValueError, match="one axis and one length"):
        nd.save(tmp_path / "x.parquet", {"x": x})
    assert os.listdir(tmp_path) == []
    folder = tmp_path / "mine.zarr"
    on_rank_0(lambda: (folder.mkdir(), (folder / "precious").write_text("precious")))
    with pytest.raises(FileExistsError, match="no Zarr store"):
        nd.save(folder, x)
    assert (folder / "precious").read_text() == "precious"
    for name in ("none/x.h5", "none/x.zarr"):
        with pytest.raises(FileNotFoundError) as caught:
            nd.save(tmp_path / name, {"x": x})
        assert caught.value.filename == str(tmp_path / name)


def test_an_error_half_way_leaves_the_old_file(tmp_path):
    for suffix in (".h5", ".zarr", ".parquet"):
        path = tmp_path / f"x{suffix}"
        nd.save(path, {"line": nd.asarray(LINE)})
        bad = np.array([None] * 101)  # which none of them can store
        with pytest.raises(Exception):  # noqa: B017 - each library has its own
            nd.save(path, {"line": nd.asarray(LINE + 1), "bad": nd.asarray(bad)})
        np.testing.assert_array_equal(plain(nd.open(path)["line"][...]), LINE)
    get_communicator().barrier()
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "x.parquet", "x.zarr"]


def test_files_that_cannot_be_opened(tmp_path):
    def write():
        (tmp_path / "text").write_text("some text")
        (tmp_path / "netcdf3").write_bytes(b"CDF\x01and so on")
        (tmp_path / "folder").mkdir()
        hdf5(tmp_path / "short.h5")
        os.truncate(tmp_path / "short.h5", 3000)
        np.save(tmp_path / "objects.npy", np.array([None, {}]))

    on_rank_0(write)
    for name, error, text in (
        ("none", FileNotFoundError, "none"),
        ("text", ValueError, "none of the formats"),
        ("netcdf3", ValueError, "from_xarray"),
        ("folder", ValueError, "no Zarr"),
        ("short.h5", OSError, "truncated"),
        ("objects.npy", ValueError, "Python objects"),
    ):
        with pytest.raises(error, match=text):
            nd.open(tmp_path / name)


def test_a_file_that_one_rank_sees_differently(tmp_path):
    comm = get_communicator()
    if comm.size == 1:
        return
    on_rank_0(lambda: (hdf5(tmp_path / "x.h5"), zarr_of(3)(str(tmp_path / "y.h5"))))
    with pytest.raises(ValueError, match="not the same for all ranks"):
        nd.open(tmp_path / ("x.h5" if comm.rank else "y.h5"))
    with pytest.raises(FileNotFoundError, match="z.h5"):
        nd.open(tmp_path / ("x.h5" if comm.rank else "z.h5"))


def test_chunks_that_are_damaged(tmp_path):
    on_rank_0(lambda: zarr_of(3)(str(tmp_path / "x.zarr")))
    file = nd.open(tmp_path / "x.zarr")
    on_rank_0(lambda: (tmp_path / "x.zarr/u/c/0/0").write_bytes(b"no chunk"))
    with pytest.raises(Exception) as caught:
        file["u"][...]
    assert "rank 0 has met this as it read <StoredArray" in "".join(caught.value.__notes__)
    np.testing.assert_array_equal(plain(file["u"][10:]), MATRIX[10:])


def test_zarr_is_read_in_pieces_of_whole_chunks(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    from numpy_dist.formats import zarr as source

    monkeypatch.setattr(source, "_PIECE", 4 * 5 * 6 * 8)
    array, chunks = np.random.default_rng(0).random((23, 31, 7)), (4, 5, 6)

    def make():
        stored = zarr.create(array.shape, chunks=chunks, dtype=array.dtype, store=str(tmp_path / "x.zarr"))
        stored[...] = array

    on_rank_0(make)
    box = ((2, 23), (0, 31), (1, 3))
    pieces = list(source._whole_chunks(box, chunks, 8))
    assert len(pieces) > 10
    seen = np.zeros(array.shape, int)
    for piece in pieces:
        seen[tuple(slice(*span) for span in piece)] += 1
        for (lo, _), (first, _), size in zip(piece, box, chunks, strict=True):
            assert lo == first or lo % size == 0
    assert seen[2:23, :, 1:3].all() and seen.sum() == 21 * 31 * 2
    stored = nd.open(tmp_path / "x.zarr")
    np.testing.assert_array_equal(plain(stored[2:, :, 1:]), array[2:, :, 1:])
    np.testing.assert_array_equal(plain(nd.asarray(stored, split=1)), array)


def test_datasets_of_xarray(tmp_path):
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset(
        {"t": (("y", "x"), MATRIX), "n": (("x",), LINE[:20])},
        coords={"x": np.arange(20) * 2.0},
        attrs={"title": "data"},
    )
    on_rank_0(lambda: data.to_netcdf(tmp_path / "x.nc", engine="scipy"))
    made = nd.from_xarray(xarray.open_dataset(tmp_path / "x.nc", engine="scipy"))
    assert isinstance(made.t.data, nd.DistArray) and isinstance(made.n.data, nd.DistArray)
    assert made.attrs == data.attrs and made.t.dims == ("y", "x")
    np.testing.assert_array_equal(plain(made.t.data), MATRIX)
    np.testing.assert_array_equal(plain(made.t.sel(x=slice(4, 9)).data), MATRIX[:, 2:5])
    np.testing.assert_array_equal(plain(nd.from_xarray(data.t, split=1).data), MATRIX)


def test_an_array_of_xarray_and_back(tmp_path):
    pytest.importorskip("xarray")
    x = nd.asarray(MATRIX)
    array = nd.to_xarray(x, ("y", "x"), {"x": np.arange(MATRIX.shape[1])}, "t", {"unit": "m"})
    assert array.data is x and array.name == "t" and array.attrs == {"unit": "m"}
    back = nd.from_xarray(array.isel(y=slice(2, None)))
    assert isinstance(back.data, nd.DistArray) and back.dims == ("y", "x")
    np.testing.assert_array_equal(plain(back.data), MATRIX[2:])
    assert nd.from_xarray(array, split=1).data.layout.cut_axes == (1,)
    np.testing.assert_array_equal(plain(nd.from_xarray(array.to_dataset(), split=1).t.data), MATRIX)


def test_an_array_of_arrow_is_made_by_one_gather():
    pyarrow = pytest.importorskip("pyarrow")
    x = nd.asarray(MATRIX).ravel()
    with nd.config(FALLBACK="warn"), pytest.warns(nd.FallbackWarning, match="gathers"):
        made = pyarrow.array(x, type=pyarrow.float32())
    assert made.to_numpy().tolist() == MATRIX.ravel().astype("f4").tolist()


def test_arrays_of_dask():
    array = pytest.importorskip("dask.array")
    x = array.from_array(MATRIX, chunks=(7, 6)) * 2
    made = nd.from_dask(x, split=1)
    assert isinstance(made, nd.DistArray)
    np.testing.assert_array_equal(plain(made), MATRIX * 2)
    with pytest.raises(ValueError, match="not known"):
        nd.from_dask(x[x > 5])

    def fails(block):
        raise RuntimeError("of a block")

    with pytest.raises(RuntimeError, match="of a block"):
        nd.from_dask(x.map_blocks(fails, dtype=float, meta=np.zeros((0, 0))))


@pytest.mark.parametrize("split", [0, 1])
def test_parts_as_chunks_of_dask(split):
    pytest.importorskip("dask.array")
    comm = get_communicator()
    x = nd.asarray(MATRIX, split=split)
    made = nd.to_dask(x)
    assert made.shape == MATRIX.shape and made.dtype == MATRIX.dtype and made.npartitions == comm.size
    x += 1  # later writes are not seen
    edges = np.cumsum([0, *made.chunks[split]])
    own = (slice(None),) * split + (slice(edges[comm.rank], edges[comm.rank + 1]),)
    assert (made[own].sum(1).compute(scheduler="synchronous") == MATRIX[own].sum(1)).all()
    if comm.size > 1:
        with pytest.raises(ValueError, match=f"are on rank {(comm.rank + 1) % comm.size}"):
            other = (comm.rank + 1) % comm.size
            made[(slice(None),) * split + (slice(edges[other], edges[other + 1]),)].compute(scheduler="synchronous")
    again = nd.from_dask(made, split=split)  # each rank computes its part
    assert (plain(again) == MATRIX).all()


@pytest.mark.parametrize("x", [np.zeros((0, 4)), np.zeros(()), np.arange(3), MATRIX[::2, 3:]])
def test_other_arrays_as_dasks(x):
    pytest.importorskip("dask.array")
    made = nd.to_dask(nd.asarray(MATRIX)[::2, 3:] if x.shape == (15, 17) else nd.asarray(x))
    assert made.shape == x.shape and made.dtype == x.dtype
    if get_communicator().size == 1 or x.size < 3:
        np.testing.assert_array_equal(made.compute(scheduler="synchronous"), x)
    assert made.npartitions <= max(get_communicator().size, 1)


def test_parts_go_to_other_libraries_without_a_copy():
    import pyarrow

    x = nd.asarray(MATRIX, split=0)
    part = x.local
    for other in (np.asarray(memoryview(part)), np.from_dlpack(part), pyarrow.array(part.ravel()).to_numpy()):
        assert np.shares_memory(other, part)


@pytest.mark.parametrize("module, suffix", [("zarr", ".zarr"), ("h5py", ".h5"), ("pyarrow.parquet", ".parquet")])
def test_a_library_that_one_rank_lacks(module, suffix, tmp_path, monkeypatch):
    comm = get_communicator()
    path = tmp_path / f"x{suffix}"
    nd.save(path, {"x": nd.asarray(LINE)})
    comm.barrier()
    if comm.rank == 0:
        monkeypatch.setitem(sys.modules, module, None)
    for call in (lambda: nd.open(path), lambda: nd.save(path, {"x": nd.asarray(LINE)})):
        with pytest.raises(ImportError, match=r"needs (zarr|h5py|pyarrow): pip install 'numpy_dist\[io\]'"):
            call()
