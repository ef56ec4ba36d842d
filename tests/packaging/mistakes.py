"""Mistakes that type checkers find, each told by the comment on its line: test_types.py compares these with mypy's."""

from __future__ import annotations

import numpy as np

import numpy_dist
from numpy_dist import DistArray

x: DistArray = numpy_dist.zeros((4, 6))
numpy_dist.linspacee(0, 1, 5)  # mypy: attr-defined
numpy_dist.linspace(0, 1, points=5)  # mypy: call-overload
numpy_dist.zeros((3, 4), spilt=0)  # mypy: call-arg
numpy_dist.zeros("many")  # mypy: arg-type
x.gathr()  # mypy: attr-defined
x.sum(axes=0)  # mypy: call-overload
x.sum(axis=0).gathr()  # mypy: attr-defined
numpy_dist.mean(x, axis=1).gathr()  # mypy: attr-defined
x.max(keepdims=True).gathr()  # mypy: attr-defined
x.reshape(3, 4, ordre="C")  # mypy: call-arg
whole: int = x.gather()  # mypy: assignment
maybe: np.ndarray = x.gather(root=0)  # mypy: assignment
x.local = np.ones(3)  # mypy: misc
x + None  # mypy: operator
x[1.5]  # mypy: call-overload
numpy_dist.config.FALLBACK = 3  # mypy: assignment
numpy_dist.config.FALBACK = "warn"  # mypy: attr-defined
numpy_dist.config(FALLBACK="loud")  # mypy: arg-type
numpy_dist.config(MIN_SHARD_SIZE=0)  # mypy: call-arg
numpy_dist.sort(x, axsi=0)  # mypy: call-overload
numpy_dist.sin(x, wher=x > 0)  # mypy: call-overload
numpy_dist.sum(x, axis="rows")  # mypy: arg-type
numpy_dist.linalg.slove(x, x)  # mypy: attr-defined
numpy_dist.linalg.qr(x, mode="thin")  # mypy: call-overload
numpy_dist.fft.fft(x, axes=0)  # mypy: call-overload
numpy_dist.random.default_rng(0).normal(size="3")  # mypy: arg-type
numpy_dist.random.randomm(3)  # mypy: attr-defined
numpy_dist.concatenate(x, y=1)  # mypy: call-overload
parts: DistArray = numpy_dist.split(x, 2)  # mypy: assignment
numpy_dist.checkpoint.save("run", x, stepp=1)  # mypy: call-arg
