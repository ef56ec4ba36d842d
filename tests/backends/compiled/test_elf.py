"""Object files as images: they do what LLVM's linker makes of them, or are left to it."""

import json
import platform
import struct

import numpy as np
import pytest

from numpy_dist.backends.compiled import linker, loader, worker
from numpy_dist.backends.compiled.elf import FormatError, ObjectFile
from tests.backends.compiled.kernels import add_one, adds_one, call, source

RELA = 4
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere LLVM links all kernels")

CALLS = source(
    "a = numba.carray(pointer_float64(w[0]), (w[1],))",
    "for j in range(w[1]):",
    "    a[j] = a[j] % 3.0 + 0.1",  # a function of libm, and a constant that has to be loaded
    "return 7",
)


@pytest.fixture(scope="module")
def code():
    return worker.object_file(add_one(), "kernel_plain")


def relocations(code):
    """Offset in the file of each relocation of code or constants, and what it says."""
    for section in ObjectFile(code).sections:
        if section.kind == RELA:
            for start in range(section.offset, section.offset + section.size, 24):
                offset, what, addend = struct.unpack_from("<QQq", code, start)
                if what & 0xFFFFFFFF == 1:
                    yield start, offset, what, addend


def changed(code, start, form, *values):
    made = bytearray(code)
    struct.pack_into(form, made, start, *values)
    return bytes(made)


def test_an_image_does_what_the_object_file_does(code):
    image = ObjectFile(code).image("kernel_plain")
    assert image is not None and image.words
    assert adds_one(loader.load(loader.pack("kernel_plain", [], code, image)))
    assert adds_one(linker.link(code, "kernel_plain"))


def test_functions_and_constants_are_found():
    content = worker.compile_kernel(CALLS, "kernel_calls")
    head = json.loads(content.partition(b"\n")[0])
    assert {name for _, name, _ in head["image"]["calls"]} == {"fmod"} == set(head["externals"])
    values = np.linspace(-10.0, 10.0, 1001)
    expected = values % 3.0 + 0.1
    assert call(loader.load(content), values, 1001) == 7
    assert np.array_equal(values, expected)


@pytest.mark.skipif(platform.system() != "Linux", reason="looks into /proc")
def test_what_is_executed_can_not_be_written(code):
    address = loader.load(loader.pack("kernel_plain", [], code, ObjectFile(code).image("kernel_plain")))
    with open("/proc/self/maps") as file:
        for line in file:
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            if low <= address < high:
                assert line.split()[1] == "r-xp"
                return
    pytest.fail("the kernel lies nowhere")


def test_other_relocations_are_left_to_llvm(code):
    start, offset, what, addend = next(relocations(code))
    assert ObjectFile(changed(code, start, "<QQq", offset, what + 1, addend)).image("kernel_plain") is None


def test_other_processors_are_left_to_llvm(code):
    assert ObjectFile(changed(code, 18, "<H", 183)).image("kernel_plain") is None


@pytest.mark.parametrize("flags", [1, 0], ids=["writable", "not there"])
def test_other_sections_are_left_to_llvm(code, flags):
    """The section of the code is said to be writable, or not to be loaded."""
    (table,), made = struct.unpack_from("<Q", code, 40), ObjectFile(code)
    entry = next(s for s in made.symbols if s.name == "kernel_plain")
    kept = made.sections[entry.section].flags | 1 if flags else 0
    broken = changed(code, table + 64 * entry.section + 8, "<Q", kept)
    assert ObjectFile(broken).image("kernel_plain") is None


def test_an_object_file_without_the_kernel_has_no_image(code):
    assert ObjectFile(code).image("kernel_other") is None


@pytest.mark.parametrize("start", [b"MZ", b"\x7fELF\x01", b""])
def test_other_formats_are_refused(start):
    with pytest.raises(FormatError):
        ObjectFile(start + bytes(100))


def places_of_numbers(code):
    """Offset and form of the numbers in the headers of the file and its sections, in its symbols and relocations."""
    yield from ((40, "<Q"), (58, "<H"), (60, "<H"), (62, "<H"))
    (table,) = struct.unpack_from("<Q", code, 40)
    for number, section in enumerate(ObjectFile(code).sections):
        start = table + 64 * number
        yield from ((start + at, form) for at, form in ((0, "<I"), (4, "<I"), (24, "<Q"), (32, "<Q"), (40, "<I")))
        yield from ((start + at, form) for at, form in ((44, "<I"), (48, "<Q")))
        if section.kind == 2:
            for symbol in range(section.offset, section.offset + section.size, 24):
                yield from ((symbol, "<I"), (symbol + 6, "<H"), (symbol + 8, "<Q"))
    for start, *_ in relocations(code):
        yield from ((start, "<Q"), (start + 12, "<I"), (start + 16, "<Q"))


def test_damaged_files_are_refused_or_stay_within_themselves():
    """Each number is replaced by large ones: what comes out is an error, or an image whose words lie inside."""
    code = worker.object_file(CALLS, "kernel_damaged")
    refused = 0
    for start, form in places_of_numbers(code):
        most = (1 << 8 * struct.calcsize(form)) - 1
        for value in (most, most >> 1, most >> 4, len(code) - 1):
            try:
                image = ObjectFile(changed(code, start, form, min(value, most))).image("kernel_damaged")
            except FormatError:
                refused += 1
                continue
            if image is not None:
                loader._check(image.data, image.entry, image.words, [c for c in image.calls if abs(c[2]) < 1 << 31])
                assert len(image.data) < 4 * len(code) + (1 << 16)
    assert refused > 50


def test_files_that_end_early_are_refused(code):
    for end in range(0, len(code), 7):
        with pytest.raises(FormatError):
            ObjectFile(code[:end])


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("entry", -1), ("entry", 1 << 40), ("entry", "0"), ("words", [[-8, 0]]), ("words", [[1 << 40, 0]]),
        ("words", [[0, 1 << 40]]), ("words", [[0]]), ("words", 7), ("calls", [[-8, "fmod", 0]]),
        ("calls", [[0, "numba_unknown", 0]]), ("calls", [[0, 5, 0]]), ("calls", [[0, "fmod", 1 << 40]]),
        ("calls", [[0, "fmod"]]), ("calls", None),
    ],
)  # fmt: skip
def test_images_that_point_outside_of_themselves_are_not_loaded(code, what, value):
    packed = loader.pack("kernel_plain", [], code, ObjectFile(code).image("kernel_plain"))
    head, _, data = packed.partition(b"\n")
    description = json.loads(head)
    description["image"][what] = value
    with pytest.raises(loader.LoadError):
        loader.load(json.dumps(description).encode() + b"\n" + data)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"7\nx", b"{}\nx", b"[1]\n", b'{"symbol": "x", "externals": 3}\n', b"\xff"]
)
def test_what_is_no_kernel_is_not_loaded(content):
    with pytest.raises(loader.LoadError):
        loader.load(content)
