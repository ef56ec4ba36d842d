"""Pictures of layouts: which rank has which block of an array, for notebooks and for matplotlib.

Nothing here is collective: a rank can draw alone, and nothing is executed.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from numpy_dist import engine
from numpy_dist.layout.layout import Cut, Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_BLOCKS = 400  # that are drawn; of more the first ones are
_LONG, _SHORT = 220.0, 40.0  # sides of a picture, in pixels: an axis is not drawn shorter than that
_CORNER = 3  # elements of each axis
_MOST_RANKS = 4  # that are named in a block


@dataclass(frozen=True)
class Patch:
    """A rectangle of a picture: what some ranks have, in elements of the two axes that are drawn."""

    ranks: tuple[int, ...]
    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def label(self) -> str:
        """The ranks' numbers."""
        shown = ", ".join(map(str, self.ranks[:_MOST_RANKS]))
        return shown + " ..." * (len(self.ranks) > _MOST_RANKS)


@dataclass(frozen=True)
class LayoutPicture:
    """A layout seen along two of its axes.

    Attributes
    ----------
    axes : tuple of int
        The axes drawn from top to bottom (none for an array of one axis) and from left to right (none without axes).
    extents : tuple of int
        Of both; 1 in place of an axis that there is not.
    patches : list of Patch
        Those without elements are left out.
    hidden : int
        How many more there are.
    """

    axes: tuple[int, ...]
    extents: tuple[int, int]
    patches: list[Patch]
    hidden: int


def picture_of(layout: Layout) -> LayoutPicture:
    """The picture of a layout, along its first two axes that are cut, and otherwise along its longest ones."""
    cut = [what.axis for what in layout.dims if isinstance(what, Cut)]
    others = [axis for axis in reversed(range(len(layout.shape))) if axis not in cut]
    others.sort(key=lambda axis: -layout.shape[axis])  # of equal ones the last
    axes = tuple(sorted([*dict.fromkeys(cut), *others][:2]))
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for rank in range(layout.size):
        box = layout.box(rank)
        if box is not None and all(lo < hi for lo, hi in box):
            found.setdefault((*((0, 1),) * (2 - len(axes)), *(box[axis] for axis in axes)), []).append(rank)
    patches = [Patch(tuple(ranks), rows, columns) for (rows, columns), ranks in found.items()]
    high, wide = (*(1,) * (2 - len(axes)), *(layout.shape[axis] for axis in axes))
    return LayoutPicture(axes, (high, wide), patches[:MOST_BLOCKS], len(patches[MOST_BLOCKS:]))


def colour(rank: int) -> tuple[float, float, float]:
    """A light colour of a rank (red, green, blue up to 1): neighbouring numbers have hues far apart."""
    hue = rank * 0.381966 % 1.0  # the golden section of the circle
    return tuple(0.62 + 0.33 * abs((hue * 6 + shift) % 6 - 3) / 3 for shift in (0, 2, 4))  # type: ignore[return-value]


def _svg(picture: LayoutPicture) -> str:
    high, wide = (max(extent, 1) for extent in picture.extents)
    scale = _LONG / max(high, wide)
    height, width = max(_SHORT, high * scale), max(_SHORT, wide * scale)
    parts = [f'<svg width="{width + 2:.0f}" height="{height + 2:.0f}" role="img" aria-label="blocks of ranks">']
    for patch in picture.patches:
        (top, bottom), (left, right) = patch.rows, patch.columns
        x, y = 1 + left / wide * width, 1 + top / high * height
        w, h = (right - left) / wide * width, (bottom - top) / high * height
        fill = ",".join(f"{255 * part:.0f}" for part in colour(patch.ranks[0]))
        told = f"rank {patch.label}: " + " x ".join(
            f"{lo}:{hi}" for lo, hi in (patch.rows, patch.columns)[2 - len(picture.axes) :]
        )
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="rgb({fill})" stroke="#555" '
            f'stroke-width="0.7"><title>{told}</title></rect>'
        )
        if w >= 7 * len(patch.label) and h >= 12:
            parts.append(
                f'<text x="{x + w / 2:.1f}" y="{y + h / 2 + 4:.1f}" font-size="11" text-anchor="middle" '
                f'fill="#222">{patch.label}</text>'
            )
    return "".join([*parts, "</svg>"])


def array_html(x: engine.Handle) -> str:
    """A card for notebooks: shape, dtype, bytes, the layout as a picture, and a corner of what this rank has."""
    layout = engine.layout_of(x)
    total = x.dtype.itemsize * int(np.prod(x.shape, dtype=object))
    rows: list[tuple[str, str]] = [("shape", str(tuple(x.shape))), ("dtype", str(x.dtype)), ("bytes", _bytes(total))]
    drawn = ""
    if not engine.is_sharded(x):
        rows.append(("layout", "a copy on every rank"))
    elif layout is None:
        rows.append(("layout", "a view whose elements no rank has in one box"))
    else:
        counts = [_volume(box) if (box := layout.box(rank)) is not None else 0 for rank in range(layout.size)]
        rows += [("a rank, at most", _bytes(x.dtype.itemsize * max(counts))), ("layout", layout.describe())]
        picture = picture_of(layout)
        drawn = _svg(picture) + (f"<div>and {picture.hidden} blocks more</div>" if picture.hidden else "")
    corner = engine.corner(x, _CORNER)
    if corner is None:
        rows.append(("values", "not computed yet, or on other ranks"))
    else:
        with np.printoptions(threshold=_CORNER**4, linewidth=60):
            rows.append((f"corner on rank {engine.runtime().rank}", f"<pre>{html.escape(str(corner))}</pre>"))
    lines = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">'
        f"{text if text.startswith('<pre>') else html.escape(text)}</td></tr>"
        for name, text in rows
    )
    return (
        '<table><tr><td colspan="2" style="text-align:left"><b>DistArray</b></td></tr>'
        f'<tr style="background:none"><td><table>{lines}</table></td><td>{drawn}</td></tr></table>'
    )


def _volume(box: Iterable[tuple[int, int]]) -> int:
    return int(np.prod([hi - lo for lo, hi in box], dtype=object))


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"


def show_layout(x: engine.Handle | Layout, ax: Axes | None = None) -> Axes:
    """Draw with matplotlib which rank has which block of an array.

    Not collective: nothing is executed, and one rank may draw alone.

    Parameters
    ----------
    x : DistArray or Layout
    ax : matplotlib.axes.Axes, optional
        Where; default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The array's axes run as those of `matplotlib.pyplot.imshow`: of more than two, two that are cut are drawn.

    Raises
    ------
    ValueError
        For an array that has no layout: it is no distributed array, or a view whose elements lie in several boxes.
    """
    layout = x if isinstance(x, Layout) else engine.layout_of(x) if engine.is_handle(x) else None
    if layout is None:
        raise ValueError("no layout describes this array: it is not distributed, or a view of parts of several boxes")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure().add_subplot()
    from matplotlib.patches import Rectangle

    picture = picture_of(layout)
    for patch in picture.patches:
        (top, bottom), (left, right) = patch.rows, patch.columns
        ax.add_patch(
            Rectangle((left, top), right - left, bottom - top, facecolor=colour(patch.ranks[0]), edgecolor="0.3")
        )
        ax.text((left + right) / 2, (top + bottom) / 2, patch.label, ha="center", va="center")
    high, wide = picture.extents
    ax.set_xlim(0, max(wide, 1))
    ax.set_ylim(max(high, 1), 0)
    names = [f"axis {axis}" for axis in picture.axes]
    ax.set_xlabel(names[-1] if names else "")
    ax.set_ylabel(names[0] if len(names) > 1 else "")
    if len(names) < 2:
        ax.set_yticks([])
    ax.set_title(f"shape {layout.shape} on mesh {layout.mesh.shape}", fontsize="medium")
    return ax
