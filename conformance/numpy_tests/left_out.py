"""What is left out of NumPy's tests, and what differs on purpose, each with its reason."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Mapping
from typing import Any

__all__ = ["FILES", "FOLDERS", "NOT_OF_ARRAYS", "difference_of", "reason_of"]

# The folders of NumPy's package whose tests are about arrays and functions of arrays.
FOLDERS = ("_core", "fft", "lib", "linalg", "polynomial")

# Reason: files of these folders, which are not run.
FILES: dict[str, str] = {
    "internals of the C implementation": """_core.test_abc _core.test__exceptions _core.test_api _core.test_argparse
    _core.test_array_api_info _core.test_arraymethod _core.test_casting_unittests _core.test_conversion_utils
    _core.test_cpu_dispatcher _core.test_cpu_features _core.test_custom_dtypes _core.test_cython
    _core.test_extint128 _core.test_hashtable _core.test_limited_api _core.test_mem_policy
    _core.test_simd _core.test_simd_module _core.test_umath_accuracy""",
    "memory, buffers and interfaces that give its address": """_core.test_array_interface _core.test_dlpack
    _core.test_mem_overlap _core.test_memmap _core.test_scalarbuffer""",
    "scalars and dtypes, without arrays": """_core.test_dtype _core.test_finfo _core.test_getlimits
    _core.test_numerictypes _core.test_scalar_ctors _core.test_scalar_methods _core.test_scalarinherit
    _core.test_scalarprint""",
    "iterators over memory take no part in the protocols": "_core.test_nditer",
    "subclasses of ndarray and the mechanism of the protocols itself": """_core.test_overrides _core.test_records
    _core.test_defchararray lib.test_mixins""",
    "threads": "_core.test_multithreading",
    "dtypes whose elements are Python objects": "_core.test_stringdtype",
    "files, paths, versions and text of the library": """lib.test__datasource lib.test__iotools lib.test__version
    lib.test_format lib.test_utils polynomial.test_printing""",
}

# Folders that are not run, for the report.
NOT_OF_ARRAYS = {
    "ma": "masked arrays are a subclass of ndarray that holds ndarrays",
    "matrixlib": "matrices are a subclass of ndarray",
    "random": "generators make arrays; what they take is read as ndarrays",
    "testing": "tests of the asserts, which gather first",
    "typing, f2py, distutils, ctypeslib": "nothing that an array takes part in",
}

# Reason: names that the code of a test uses.
_MENTIONED: dict[str, str] = {
    "counts references, or asks the garbage collector": "getrefcount get_referents collect",
    "starts threads or processes": """threading Thread run_threaded _test_mtsame ThreadPoolExecutor subprocess
    run_subprocess Pool""",
    "memory as ctypes, buffers and addresses": "ctypes memoryview __array_interface__ __array_struct__ __buffer__",
}

# Reason: tests that are not run, by their names or the beginnings of them, up to `::` or `[`.
TESTS: dict[str, str] = {
    "views as subclasses of ndarray, which hold their data themselves": """
    lib.test_shape_base::TestApplyAlongAxis::test_preserve_subclass
    lib.test_shape_base::TestApplyAlongAxis::test_subclass
    lib.test_shape_base::TestApplyAlongAxis::test_subclass_preservation
    lib.test_shape_base::TestApplyAlongAxis::test_axis_insertion_ma
    lib.test_ufunclike::TestUfunclike::test_fix_with_subclass linalg.test_linalg::TestSolve::test_1_d
    linalg.test_linalg::TestSolve::test_0_size linalg.test_linalg::TestSolve::test_0_size_k
    linalg.test_linalg::TestInv::test_0_size linalg.test_linalg::TestEigvals::test_0_size
    linalg.test_linalg::TestEig::test_0_size linalg.test_linalg::TestEigvalsh::test_0_size
    linalg.test_linalg::TestEigh::test_0_size linalg.test_linalg::TestCholesky::test_0_size
    _core.test_multiarray::TestMethods::test_searchsorted_return_type
    _core.test_multiarray::TestArrayFinalize::test_bad_finalize1
    _core.test_multiarray::TestArrayFinalize::test_bad_finalize2
    _core.test_multiarray::TestArrayFinalize::test_bad_finalize3""",
    "arrays of several gigabytes, of which NumPy touches a part and others have a copy": """
    _core.test_regression::TestRegression::test_dot_big_stride""",
    "loops in Python that write 65,536 elements and more one by one, for longer than the time limit": """
    _core.test_multiarray::test_sort_float16 _core.test_multiarray::TestMethods::test_sort_degraded
    _core.test_multiarray::TestUnicodeEncoding::test_round_trip""",
    "helpers in C that take whatever they are given for an ndarray": """
    _core.test_multiarray::TestTemporaryElide::test_extension_incref_elide""",
}

# Reason: tests that are run and fail, on purpose; only arrays of this library differ so.
DIFFERENT: dict[str, str] = {
    "NumPy's limit of arrays in an index, which is one of its iterator": """
    _core.test_indexing::TestIndexing::test_too_many_fancy_indices_special_case
    _core.test_indexing::TestIndexing::test_too_many_advanced_indices""",
    "the protocol does not tell `out=None` from no `out`, and a warning would meet those who heed it": """
    _core.test_ufunc::TestUfunc::test_where_warns""",
    "a record read from a sharded array is a value of its own, and no view of memory": """
    _core.test_multiarray::TestStructured::test_setfield _core.test_multiarray::TestRecord::test_field_names
    _core.test_multiarray::TestRecord::test_record_no_hash""",
    "pickles hold gathered values, which are contiguous and go out of band where a view of NumPy's does not": """
    _core.test_multiarray::TestPickling::test_non_contiguous_array
    _core.test_multiarray::TestZeroSizeFlexible::test_pickle_with_buffercallback""",
    "private flags and bases of ndarrays, which tell of their memory": """
    _core.test_multiarray::TestFlags::test_warnonwrite _core.test_multiarray::TestFlags::test_writeable_pickle
    _core.test_multiarray::TestFlat::test___array__""",
    "a ufunc for tests whose loop always fails: loops run when the program does, and nobody asks for its result": """
    _core.test_umath::test_bad_legacy_ufunc_silent_errors
    _core.test_umath::test_bad_legacy_unary_ufunc_silent_errors""",
    "a ufunc for tests that computes something else where NumPy takes its loop for indices": """
    _core.test_ufunc::TestUfunc::test_ufunc_at_negative""",
    "Python objects that hold distributed arrays, whose operators run on one rank, and which NumPy calls sequences": """
    _core.test_array_coercion::TestStringDiscovery::test_unpack_first_level[ndarray]
    _core.test_multiarray::TestDot::test_vecobject""",
    "files of several ranks: one of them writes for all, and here each reads in a folder of its own": """
    _core.test_multiarray::TestStructured::test_zero_width_string _core.test_multiarray::TestIO::test_roundtrip_file
    _core.test_multiarray::TestIO::test_roundtrip _core.test_multiarray::TestIO::test_roundtrip_dump_pathlib
    _core.test_multiarray::TestIO::test_unseekable_fromfile
    _core.test_multiarray::TestIO::test_io_open_unbuffered_fromfile
    _core.test_multiarray::TestIO::test_io_open_buffered_fromfile _core.test_multiarray::TestIO::test_largish_file
    _core.test_multiarray::TestIO::test_file_position_after_fromfile
    _core.test_multiarray::TestIO::test_file_position_after_tofile
    _core.test_multiarray::TestIO::test_fromfile_offset _core.test_multiarray::TestIO::test_tofile_sep
    _core.test_multiarray::TestIO::test_tofile_format _core.test_multiarray::TestIO::test_fromfile_subarray_binary
    _core.test_multiarray::TestIO::test_read_shorter_than_count_subarray
    _core.test_multiarray::TestIO::test_tofile_cleanup
    _core.test_regression::TestRegression::test_fromfile_tofile_seeks lib.test_io::TestSaveLoad
    lib.test_io::TestSavezLoad lib.test_io::TestSaveTxt::test_multifield_view
    lib.test_io::TestSaveTxt::test_file_roundtrip lib.test_io::TestSaveTxt::test_unicode_roundtrip
    lib.test_io::TestSaveTxt::test_custom_writer lib.test_io::TestPathUsage lib.test_io::test_gzip_load
    lib.test_io::test_ducktyping lib.test_loadtxt::test_skiprow_exceeding_maxrows_exceeding_chunksize""",
    "functions of a distributed and a masked array are refused, since neither knows the other": """
    lib.test_function_base::TestTrapezoid::test_masked lib.test_recfunctions::TestMergeArrays::test_wmasked_arrays""",
}


def _found(table: Mapping[str, str], name: str) -> str | None:
    """The reason under which a table names a test, its class or its file."""
    parts = name.partition("[")[0].split("::")
    beginnings = {name, *("::".join(parts[:count]) for count in range(1, len(parts) + 1))}
    return next((reason for reason, tests in table.items() if beginnings & set(tests.split())), None)


def difference_of(name: str) -> str | None:
    """Why arrays of this library differ in this test; None if nothing says so."""
    return _found(DIFFERENT, name)


def reason_of(name: str, item: Any) -> str | None:
    """Why a test is left out; None if it is not."""
    reason = _found(TESTS, name)
    if reason is not None:
        return reason
    names = _names(item.function.__code__) if inspect.isfunction(getattr(item, "function", None)) else frozenset()
    return next((reason for reason, words in _MENTIONED.items() if names & set(words.split())), None)


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    """Global names and attributes in a piece of code, and in the functions that it defines."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*inner)
