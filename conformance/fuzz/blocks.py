"""Statements of several lines and what lives longer than a line: loops, closures, generators, copies, references."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from numpy_dist.conformance.fuzz.interpreter import variables
from numpy_dist.conformance.fuzz.statements import assign, elementwise, in_place, in_place_function, kind, view
from numpy_dist.conformance.fuzz.writer import Writer

__all__: list[str] = []


def _body(w: Writer, count: int, kinds: list[Callable[[Writer], object]]) -> list[str]:
    """Some statements, written (and run by NumPy) once, but not part of the program by themselves."""
    begin = len(w.statements)
    for _ in range(4 * count):
        if len(w.statements) - begin < count:
            w.one(kinds)(w)
    body, w.statements[begin:] = w.statements[begin:], []
    return body


@kind(5)
def loop(w: Writer) -> None:
    """A loop whose body recurs, with a value that is needed in it now and then."""
    before = dict(w.names)
    body = _body(w, w.one([1, 2, 2, 3, 4]), [elementwise, in_place, in_place, assign, view, in_place_function])
    if not body:
        return
    carried = [name for name in variables(w.names) if name not in before]
    name = w.pick(lambda x: x.dtype.kind == "f" and x.flags.writeable)
    if name is not None and w.chance(0.5):
        mirrored = f"{name} = abs({name}) + {name}[..., ::-1]"
        body.append(w.one([f"{name} = {name} * 0.5", mirrored, f"{name}[...] *= 0.5"]))
    whole = w.pick(lambda x: x.dtype.kind in "iuf" and x.size)
    if whole is not None and w.chance(0.3):
        body.append(w.one([f"check({whole}.max())", f"if {whole}.min() > 3: break", f"check({whole}.ravel()[0])"]))
    if carried and w.chance(0.2):
        body.append(f"del {carried[0]}")
    w.begin_again()  # without the body, which has written into arrays
    times = w.one([2, 3, 4, 5, 7])
    w.add(f"for k in range({times}):\n" + textwrap.indent("\n".join(body), "    "))


@kind(2)
def rows(w: Writer) -> None:
    """Iteration over rows, which are views."""
    name = w.pick(lambda x: 0 < x.ndim and len(x) < 20)
    if name is None:
        return
    x = w.names[name]
    row = w.one(["row += 1", "row[...] = 2", "row[::2] *= 2", "row[:] = row[::-1]"])
    text = w.one(
        [
            f"for row in {name}:\n    {row if x.ndim > 1 and x.flags.writeable else 'check(row)'}",
            f"for k, row in enumerate({name}):\n    check(row)\n    if k == 1: break",
            f"{w.fresh()} = [row + 1 for row in {name}]",
            f"{w.fresh()} = sum(row for row in {name})" if x.dtype.kind in "iu" else f"{w.fresh()} = list({name})",
        ]
    )
    if x.dtype.kind in "biufc":
        w.add(text)


@kind(3)
def closure(w: Writer) -> None:
    """A closure or generator that holds arrays, and is called later."""
    name = w.pick(lambda x: x.ndim and x.dtype.kind in "biuf")
    if name is None:
        return
    held = f"f{w.number}"
    w.number += 1
    text = w.one([f"lambda held={name}[1:]: held + held", f"lambda: {name} + 1", f"iter({name})", f"{name}.flat"])
    generator = text.startswith("iter") or text.endswith("flat")
    if w.chance(0.3):
        text, generator = f"({name}[k:] + k for k in range(3))", True
    if not w.add(f"{held} = {text}"):
        return
    if generator and w.chance(0.5):
        w.bind(f"next({held})")
    if w.chance(0.4):
        w.add(f"del {name}")
    for _ in range(w.upto(2)):
        w.one([elementwise, in_place, assign])(w)
    w.bind(f"next({held})" if generator else f"{held}()")


@kind(3)
def raised(w: Writer) -> None:
    """An exception in the middle, which holds arrays through its arguments and its traceback."""
    name = w.pick(lambda x: x.ndim and x.dtype.kind in "biuf")
    if name is None:
        return
    held = f"e{w.number}"
    w.number += 1
    action = w.one([f"{name}[:1] + np.ones((7, 9))", f"{name}[99]", "1 / 0", f"raise ValueError({name} + 1)"])
    writing = f"    {name}[:1] = 2\n" if w.names[name].flags.writeable else ""
    w.add(f"try:\n    passing = {name} + 1\n{writing}    {action}\nexcept Exception as error:\n    {held} = error")
    w.add(f"check({held})")
    if action.startswith("raise"):
        w.bind(f"{held}.args[0]")


@kind(4)
def copies(w: Writer) -> None:
    """Copies, also deep ones and by pickles."""
    name = w.pick()
    if name is None:
        return
    dtype = w.one(["f8", "i4", "f4", "?", "c16"])
    kinds = [f"{name}.copy()", f"copy.copy({name})", f"copy.deepcopy({name})", f"pickle.loads(pickle.dumps({name}))"]
    kinds += [f"np.copy({name})", f"{name}.astype({dtype!r})", f"np.array({name}, like={name})"]
    kinds += [f"{name}.astype({name}.dtype, copy=False)", f"np.empty_like({name})", f"np.zeros_like({name})"]
    kinds += [f"np.full_like({name}, {w.scalar(w.names[name].dtype.kind)})", f"copy.deepcopy([{name}, {name}])[1]"]
    kinds += [f"{name}.copy(order='F')", f"np.asfortranarray({name}, like={name})"]
    kinds += [f"np.ascontiguousarray({name}, like={name})", f"np.asarray({name}, like={name})"]
    text = w.one(kinds)
    if "empty_like" in text:
        made = w.bind(text)
        if made is not None:
            w.add(f"{made}[...] = {name}")
    else:
        w.bind(text)


@kind(5)
def dropped(w: Writer) -> None:
    """Names that go, and a collection of what nobody refers to."""
    name = w.pick()
    if name is None or len(w.arrays()) < 3:
        return
    w.add(f"del {name}")
    if w.chance(0.2):
        w.add("gc.collect()")
    if w.chance(0.1):
        other = w.pick()
        w.add(f"ring = [{other}, {other} + 1 if {other}.dtype.kind in 'if' else None]; ring.append(ring); del ring")


@kind(2)
def rebound(w: Writer) -> None:
    """A name that means another array from now on."""
    name = w.pick(lambda x: x.dtype.kind in "biuf")
    if name is not None:
        w.add(f"{name} = {w.one([f'{name} + 1', f'{name}[..., ::-1]', f'{name} > 1', f'{name}.copy()'])}")


@kind(2)
def error_state(w: Writer) -> None:
    """Operations whose floating-point events are ignored, raise, or are collected."""
    name = w.pick(lambda x: x.dtype.kind in "iuf" and x.size)
    if name is None:
        return
    risky = w.one([f"1 / {name}", f"np.sqrt({name} - 3)", f"{name} // 0", f"np.float32(1e30) * {name} * 1e30"])
    new = w.fresh()
    forms = [
        f"with np.errstate(all={w.one(['ignore', 'raise', 'warn'])!r}):\n    {new} = {risky}",
        f"with np.errstate(all='raise'):\n    {name}[...] = {risky}",
        f"with warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    {new} = {risky}",
        f"with warnings.catch_warnings():\n    warnings.simplefilter('error')\n    {new} = {risky}",
        "with warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter('always')\n"
        f"    {new} = {risky}\ncheck(len(told))",
    ]
    before = w.errors
    w.add(w.one(forms))
    w.errors = before


@kind(0.3)
def elsewhere(w: Writer) -> None:
    """A thread that looks at shapes, a fork that computes on its own and ends."""
    name = w.pick()
    if name is None:
        return
    if w.chance(0.7):
        action = f"thread = threading.Thread(target=lambda: shapes.append(({name}.shape, {name}.dtype.str)))"
        w.add(f"shapes = []\n{action}\nthread.start(); thread.join()\ncheck(shapes)")
    else:
        w.add("pid = os.fork()\nif pid == 0:\n    os._exit(int(np.arange(4).sum()))\ncheck(os.waitpid(pid, 0)[1])")
