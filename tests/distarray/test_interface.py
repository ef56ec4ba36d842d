"""Every attribute of ndarray is there: native, or refused with a reason that stands in a table."""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings

import numpy as np
import pytest

import numpy_dist as nd
from numpy_dist.conformance.suite import cases_by_function
from numpy_dist.distarray import interface
from numpy_dist.errors import UnsupportedError
from numpy_dist.spmd_testing import run_simulated

from .oracle import assert_same, check

F8 = np.random.default_rng(3).integers(-9, 10, (6, 5)) / 4
# What every Python object has, and ndarray does not change.
OBJECTS = set(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__", "__str__"}
# Operators that are tried as such in test_operators and in the conformance cases.
OPERATORS = "add sub mul truediv floordiv mod divmod pow lshift rshift and or xor matmul"
REFLECTED = {f"__{r}{name}__" for r in "ri" for name in OPERATORS.split()}
NUMPYS = [name for name in dir(np.ndarray) if hasattr(np.ndarray, name) and name not in interface.LEFT_OUT]


def missing(name):
    return not hasattr(nd.DistArray, name)


def test_every_attribute_is_there():
    assert [name for name in NUMPYS if missing(name)] == []


def test_the_tables_name_attributes_of_ndarray_only():
    tables = (interface.REFUSED, interface.NEEDS_MEMORY, interface.GATHERING)
    assert {name for table in tables for name in table} <= set(dir(np.ndarray))
    assert sum(map(len, tables)) == len({name for table in tables for name in table})
    assert {name for name in interface.LEFT_OUT if name in dir(nd.DistArray)} == set()


@pytest.mark.parametrize("name", interface.REFUSED)
def test_refused(name):
    def body(n):
        with nd.config(MIN_SHARD_BYTES=n):
            a = nd.asarray(F8)
            reason = interface.REFUSED[name].partition(":")[0]
            with pytest.raises((AttributeError, UnsupportedError), match=reason):
                getattr(a, name)(())
            assert hasattr(a, name) == (name in interface.METHODS)  # protocols seem to be missing

    for n in (0, 1 << 40):
        run_simulated(2, body, n)


@pytest.mark.parametrize("name", interface.NEEDS_MEMORY)
def test_what_needs_memory(name):
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            with pytest.raises((AttributeError, BufferError), match=r"several ranks: x\.local"):
                getattr(nd.asarray(F8), name)()
        small = getattr(nd.asarray(F8), name)
        assert small() if callable(small) else small is not None

    run_simulated(2, body)


def test_every_attribute_has_a_conformance_case():
    covered = {getattr(target, "__name__", "") for target in cases_by_function() if _of_ndarray(target)}
    covered |= {"__array_finalize__", "__array_priority__", "__class_getitem__"}  # not about an array's values
    special = set(interface.REFUSED) | set(interface.NEEDS_MEMORY) | OBJECTS | REFLECTED
    assert sorted(set(NUMPYS) - covered - special) == []


def _of_ndarray(target):
    return getattr(target, "__objclass__", None) is np.ndarray or getattr(target, "__qualname__", "")[:7] == "ndarray"


def test_local_memory_is_shared_with_others():
    def body():
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="error"):
            a = nd.asarray(F8, split=0)
            part = np.from_dlpack(a.local)
            assert np.shares_memory(part, a.local)
            a.local[...] = a.comm.rank
            assert (part == a.comm.rank).all()
            memoryview(a.local)[0, 0] = 7.0
            assert_same(a[0], np.array([7.0, 0, 0, 0, 0]))
            assert a[3, 0] == 7 and a[5, 4] == 1

    run_simulated(2, body)


@pytest.mark.parametrize("order", "CF")
def test_flags(order):
    names = [n for n in dir(np.zeros(1).flags) if not n.startswith("_")]

    def body(a):
        views = (a, a[1:], a.T, a[::2, ::2], a[None], a[:0], np.broadcast_to(a, (2, *a.shape)), a.view("i4"))
        return [[str(v.flags), v.flags["O"], v.flags["F"], *(getattr(v.flags, n) for n in names)] for v in views]

    check(body, np.array(F8, order=order), replicated=False)

    def change(a):
        a.flags.writeable = False
        view = a[1:]
        a.flags["W"] = True
        assert a.flags != view.flags and a.flags == a.flags and not view.flags.writeable
        view[0] = 3

    check(change, F8, replicated=False)
    check(lambda a: a.flags["nonsense"], F8)


def test_views_of_what_cannot_be_written_do_not_become_writeable():
    for made in (lambda a: a[1:], lambda a: a.view(), lambda a: a.T, lambda a: a[1:][:2], lambda a: a.ravel()):

        def body(a, made=made):
            a.flags.writeable = False
            view = made(a)
            with contextlib.suppress(ValueError):
                view[...] = 7
            view.setflags(write=False, align=True)
            view.flags.writeable = True

        def again(a, made=made):
            a.flags.writeable = False
            view = made(a)
            a.flags.writeable = True
            view.setflags(write=True)
            view[...] = 7

        def left(a, made=made):
            a = a * 2
            a.flags["W"] = False
            view = made(a)
            del a
            view.flags["W"] = True

        check(body, F8)
        check(again, F8)
        check(left, F8)


def test_read_only_views():
    for write in ("v[0] = 1", "v += 1", "v[v > 0] = 1", "v[[0]] = 1", "v.fill(1)", "np.add(v, 1, out=v)", "v.sort()"):

        def body(a, write=write):
            v = np.broadcast_to(a, (2, *a.shape)) if write != "v.sort()" else a.diagonal()
            exec(write, {"np": np}, {"v": v})

        check(body, F8, fallback="silent")
    check(lambda a: a.diagonal().setflags(write=True), F8, replicated=False)


def test_strides_can_be_set():
    def body(a):
        a = a[1:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a.strides = (40, 8)
            a.strides = (80, 8) if len(a) < 3 else (40, 8)
        return a + 0

    check(body, F8)
    for strides in ((400, 8), (8,), "x", (40, 8.5), (-40, 8)):

        def wrong(a, strides=strides):
            a = a[2:]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                a.strides = strides
            return a + 0

        check(wrong, F8)


def test_array_with_copy():
    def body(n):
        with nd.config(MIN_SHARD_BYTES=n, FALLBACK="silent"):
            a = nd.asarray(F8)
            for made in (np.array(a), np.array(a, copy=True), a.__array__(copy=True), a.__array__(np.dtype("f4"))):
                assert type(made) is np.ndarray
                np.testing.assert_array_equal(made, F8)
                made[...] = 0
            np.testing.assert_array_equal(a.gather(), F8)
            for ask in (lambda: np.array(a, "f4", copy=False), lambda: a.__array__("i4", copy=False)):
                with pytest.raises(ValueError, match="avoid copy"):
                    ask()
            if n:
                assert np.shares_memory(np.asarray(a), np.array(a, copy=False))

    for n in (0, 1 << 40):
        run_simulated(2, body, n)


@pytest.mark.parametrize("ranks", [1, 2])
def test_strides_through_a_gathered_copy_stay_in_its_memory(ranks: int):
    as_strided = np.lib.stride_tricks.as_strided
    cube = np.arange(60.0).reshape(3, 4, 5)
    looks = [
        lambda x: x[::-1, 1:],
        lambda x: x.T[::2],
        lambda x: x.view("c8").real[:, ::2],
        lambda x: x[:0],
        lambda x: (x + 0).swapaxes(0, 1),
    ]

    def body():
        with nd.config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
            for values in (cube, np.asfortranarray(cube), cube.transpose(1, 2, 0)):
                for look in looks:
                    if values.strides[-1] != 8 and look is looks[2]:
                        continue  # NumPy does not view it so
                    expected, x = look(values), look(nd.asarray(values))
                    assert x.strides == expected.strides
                    found = as_strided(x, expected.shape, expected.strides)
                    assert np.array_equal(found, expected)
                    if expected.size:  # and beyond the view, in the array that it is one of
                        found = as_strided(x[:1], expected.shape, expected.strides)
                        assert np.array_equal(found, as_strided(expected[:1], expected.shape, expected.strides))

    run_simulated(ranks, body)


def test_views_as_ndarray_and_wrapping():
    def body(n):
        with nd.config(MIN_SHARD_BYTES=n, FALLBACK="error"):
            a = nd.asarray(F8)
            view = a.view(np.ndarray)
            view[0] = 3
            assert type(view) is nd.DistArray and a[0, 0] == 3
            assert a.view("i8", type=np.ndarray).dtype == "i8"
            with pytest.raises(UnsupportedError, match="another array class"):
                a.view(np.matrix)
            wrapped = a.__array_wrap__(F8)
            assert type(wrapped) is nd.DistArray and wrapped.shape == F8.shape
            assert a.__array_wrap__(np.array(2.0), None, True) == 2.0 and a.__array_finalize__ is None

    for n in (0, 1 << 40):
        run_simulated(2, body, n)


def test_flat():
    for expression in (
        "a.flat < 0", "a.flat >= a", "a.flat != 1", "a.flat[3:9:2]", "a.flat[[1, 5]]", "len(a.flat)", "a.flat[-1]",
        "[next(a.flat), a.flat.index, a.flat.coords]", "a.T.flat[2:7]", "a.flat.copy()", "a.flat.base is a",
        "a.flat.__delitem__(0)",
    ):  # fmt: skip
        body = eval(f"lambda a: {expression}")
        check(lambda a, body=body: body(a), F8 if ">= a" not in expression else F8.ravel())

    def advanced(a):
        it = a.flat
        first = [next(it) for _ in range(7)]
        return first, it.index, it.coords

    check(advanced, F8)

    def write(a):
        a.flat[2] = 9
        a.flat[3:6] = [1, 2]
        a.T.flat[:4] = 5
        a.flat = np.arange(4.0)
        return a

    check(write, F8)


def test_flat_begins_again_when_it_is_indexed():
    def work(a):
        it, found = a.flat, []
        for key in (3, slice(2), ..., [1], (1,), np.arange(a.size) > 4):
            found += [next(it), next(it), it[key], it.index, next(it)]
        for key in (3, slice(2), (1,)):
            found += [next(it), it.__setitem__(key, 50.0), it.index, next(it)]
        return found

    check(work, F8)
    check(lambda a: work(a.T), F8)


def test_fortran_arrays_are_no_views():
    def body():
        with nd.config(MIN_SHARD_BYTES=0):
            a = nd.zeros((4, 5), order="F")
            assert a.base is None and a.flags.owndata and a.T.base.shape == (4, 5)
            a.resize((5, 4), refcheck=False)

    run_simulated(2, body)


def test_attributes_cannot_be_deleted():
    def body(a):
        del a[0]

    check(body, F8)
    a = nd.asarray(F8)
    assert copy.copy(a).base is None and pickle.loads(pickle.dumps(a)).shape == a.shape


def test_an_iterator_over_elements_that_are_not_contiguous_sees_later_writes():
    def work(x):
        elements = x.T.flat
        first = [float(next(elements)) for _ in range(2)]
        x[...] = 5
        return first + [float(next(elements)) for _ in range(len(elements) - 2)]

    with nd.config(MIN_SHARD_BYTES=0):
        values = np.arange(12.0).reshape(3, 4)
        assert work(nd.asarray(values)) == work(values.copy())


@pytest.mark.parametrize("name", ["array", "asarray"])
def test_text_does_not_become_bytes(name: str) -> None:
    x, make = np.array(["ab", "cde"]), getattr(np.char, name)
    with nd.config(MIN_SHARD_BYTES=0, FALLBACK="silent"):
        d = nd.asarray(x)
        with pytest.raises(TypeError, match="unicode=True"):
            make(d)
        found = make(d, unicode=True)
    assert found.dtype == x.dtype
    assert found.tolist() == x.tolist()
