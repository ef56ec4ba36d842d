"""How the plug-in ``matplotlib`` gets to Matplotlib and seaborn, without importing anything before it is needed.

Where these libraries are there already, or as soon as they come (`numpy_dist.importing`), some methods of Matplotlib's
``Axes`` get another one in front, for axes of any age, and so do seaborn's functions. Each looks whether it is given a
distributed array, and if not, or with the plug-in off, calls the library's own; `matplotlib_axes` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from numpy_dist.argument_types import Function
from numpy_dist.importing import put_before

OF_AXES = ("plot", "imshow", "hist", "scatter", "boxplot", "violinplot")
OF_SEABORN = (
    "histplot heatmap lineplot scatterplot relplot displot kdeplot ecdfplot rugplot regplot residplot lmplot catplot "
    "stripplot swarmplot boxplot boxenplot violinplot pointplot barplot countplot jointplot"
).split()


def take_over_axes(module: ModuleType) -> None:
    """Stand before methods of Matplotlib's axes."""
    axes = getattr(module, "Axes", None)
    for name in OF_AXES:
        _put_before(axes, name, _is_usual)


def _is_usual(axes: Any, *args: object, **kwargs: object) -> bool:
    return axes.name == "rectilinear" and kwargs.get("data") is None


def take_over_seaborn(module: ModuleType) -> None:
    """Stand before seaborn's functions."""
    for name in OF_SEABORN:
        _put_before(module, name, _always, f"seaborn_{name}" if name in ("histplot", "heatmap") else "seaborn_plot")


def _always(*args: object, **kwargs: object) -> bool:
    return True


def _put_before(owner: object, name: str, is_for_us: Callable[..., bool], ours: str | None = None) -> None:
    def call(own: Function, *args: object, **kwargs: object) -> Any:
        if is_for_us(*args, **kwargs):
            from numpy_dist.interop import matplotlib_axes

            if matplotlib_axes.concerns(args, kwargs):
                return getattr(matplotlib_axes, ours or name)(own, *args, **kwargs)
        return own(*args, **kwargs)

    put_before(owner, name, call)
