"""Nothing but structural operations sees arrays without memory: the source code is searched for other uses.

The ndarray of a handle (``x._array``) is one where the handle is sharded. Code may ask for its metadata, compare its
identity, and give it to functions that look at metadata only; `engine.plain` is for replicated arrays. What else there
is has to be listed here: either it is reached for replicated arrays only, which the function itself must have asked, or
it hands the array on to somebody who is looked at as well.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy_dist

METADATA = {"base", "device", "dtype", "flags", "itemsize", "nbytes", "ndim", "shape", "size", "strides"}
# Functions that look at shapes, strides, flags and addresses.
LOOKING = {
    "Ref", "_Like", "_changed", "_seen_as", "_stack_of", "copy_axes", "fast_power", "header_data_from_array_1_0",
    "is_writeable", "iteration_axes", "joined_order", "len", "may_write", "memory_axes", "offset_of", "order_axes",
    "view_of",
}  # fmt: skip
ASKED = "for replicated arrays only"
HANDED = "handed on as metadata"
ALLOWED = {
    "numpy_dist/distarray/array.py": {
        "DistArray.T": ASKED,
        "DistArray.__array__": ASKED,
        "DistArray.__deepcopy__": ASKED,
        "DistArray.__dlpack__": ASKED,
        "DistArray._memory_of": ASKED,
        "DistArray._scalar": ASKED,
        "DistArray.local": ASKED,
    },
    "numpy_dist/distarray/at_hand/elements.py": {"elements": ASKED, "writeable": ASKED},
    "numpy_dist/distarray/indexing.py": {
        "Indexing.__contains__": ASKED,
        "Indexing.__getitem__": ASKED,
        "Indexing._part": ASKED,
        "Indexing.__setitem__": ASKED,
        "Indexing._set_replicated": ASKED,
        "Indexing._set": ASKED,
        "Indexing._set_advanced": ASKED,
    },
    "numpy_dist/distarray/methods.py": {
        "Methods._set_flags": ASKED,
        "Methods.astype": ASKED,
        "Methods.copy": ASKED,
        "Methods.flatten": ASKED,
        "Methods.item": ASKED,
        "Methods.reshape": ASKED,
        "Methods.resize": HANDED,
        "_in_place_method.method": ASKED,
        "_method.method": ASKED,
    },
    "numpy_dist/distarray/operators.py": {
        "Operators.__imatmul__": ASKED,
        "Operators.__matmul__": ASKED,
        "_binary.forward": ASKED,
        "_call_replicated": ASKED,
        "_equality.equality": ASKED,
        "_in_place.in_place": ASKED,
        "_reflected.reflected": ASKED,
        "_unary.unary": ASKED,
    },
    "dispatch/core/noting.py": {"_describe": ASKED},
    "numpy_dist/engine/recording/copies.py": {"assign": HANDED, "copy": HANDED},
    "numpy_dist/engine/data/elements.py": {"_fetch": HANDED},
    "numpy_dist/engine/data/gather.py": {"_shard": HANDED, "_gather": HANDED},
    "numpy_dist/engine/memory/handle.py": {"as_made": HANDED, "metadata": HANDED, "plain": ASKED},
    "numpy_dist/engine/data/meta_access.py": {"_arrays": ASKED},
    "numpy_dist/engine/recording/casts.py": {"without_imaginary_part": HANDED},
    "numpy_dist/engine/recording/numpy_errors.py": {"numpy_error.stand_in": ASKED},
    "numpy_dist/engine/recording/replay.py": {
        "StatementTemplate.__init__": HANDED,
        "ReductionTemplate.__init__": HANDED,
    },
    "numpy_dist/engine/recording/reduce.py": {"_append": HANDED},
    "numpy_dist/engine/recording/queries.py": {"is_adjoint": HANDED, "is_transpose": HANDED},
    "numpy_dist/engine/data/windows.py": {"hand_over": HANDED, "in_memory": HANDED, "open_window": HANDED},
    "numpy_dist/random/calls.py": {"made_into": HANDED},
    "dispatch/core/fallback.py": {"simple": ASKED},
    "dispatch/core/outcome.py": {"_alias_of": HANDED},
    "dispatch/patterns/arguments.py": {"metadata": HANDED},
    "dispatch/functions/array_creation_from_shape.py": {"_like": HANDED},
    "dispatch/functions/array_manipulation_editing.py": {"_ArrayConverter.as_arrays": "an attribute of another class"},
    "dispatch/patterns/index_arrays.py": {"along_memory": HANDED},
}


class Uses(ast.NodeVisitor):
    """The functions of a module that do more with ``x._array`` than to look at metadata, and their sources."""

    def __init__(self, text: str) -> None:
        self.text, self.stack, self.found = text, [], {}
        self.tree = ast.parse(text)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.visit(self.tree)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        self.stack.append(node)
        self.generic_visit(node)
        self.stack.pop()

    visit_ClassDef = visit_FunctionDef

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if node.attr == "_array" and isinstance(node.ctx, ast.Load) and not self._only_looks(node):
            name = ".".join(frame.name for frame in self.stack)
            self.found[name] = ast.get_source_segment(self.text, self.stack[-1])

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "_view":
            assert not any(isinstance(part, ast.Lambda) for part in ast.walk(node)), ast.unparse(node)

    def _only_looks(self, node: ast.AST) -> bool:
        parent = self.parents[node]
        if isinstance(parent, ast.Attribute):
            return parent.attr in METADATA
        while isinstance(parent, ast.List | ast.ListComp | ast.IfExp | ast.Starred):
            parent = self.parents[parent]
        if isinstance(parent, ast.Compare):
            return all(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops)
        if not isinstance(parent, ast.Call):
            return False
        name = ast.unparse(parent.func)
        return name.startswith("structure.") or name.rpartition(".")[2] in LOOKING


def test_no_other_use_of_arrays_without_memory():
    package = Path(numpy_dist.__file__).parent
    root = package.parent
    if not (root / "dispatch").is_dir():
        root = package  # an installed wheel has everything inside of it
    files = [path for folder in (package, root / "dispatch", root / "backends") for path in folder.rglob("*.py")]
    found = {}
    for path in sorted(set(files)):
        name = str(path.relative_to(root))
        if "conformance" in path.parts or name.startswith("backends/fake"):
            continue
        uses = Uses(path.read_text()).found
        if uses:
            found[name] = uses
    assert {name: sorted(uses) for name, uses in found.items()} == {
        name: sorted(uses) for name, uses in ALLOWED.items()
    }
    for name, uses in found.items():
        for function, source in uses.items():
            if ALLOWED[name][function] is ASKED:
                assert "_storage" in source or "is_sharded" in source, f"{name}: {function} does not ask"


def test_the_search_finds_uses():
    for text in ("np.sum(x._array)", "x._array[0]", "x._array.sum()", "y = x._array", "f(a=x._array)", "x._array == 1"):
        assert Uses(f"def f(x):\n    {text}\n").found, text
    for text in ("x._array.shape", "x._array is y", "memory_axes([x._array], shape)", "structure.index(x._array, 0)"):
        assert not Uses(f"def f(x):\n    {text}\n").found, text
