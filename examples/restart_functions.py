"""Three programs that go on for many steps: plain NumPy, as one writes it for one process."""

import numpy as np


class Heat:
    """A plate with one hot edge, and hot spots at random places."""

    def start(size, rng):
        plate = np.zeros((size, size))
        plate[0] = 100.0
        return {"plate": plate}

    def advance(state, rng):
        plate = state["plate"]
        inner = plate[1:-1, 1:-1]
        inner += 0.2 * (plate[2:, 1:-1] + plate[:-2, 1:-1] + plate[1:-1, 2:] + plate[1:-1, :-2] - 4 * inner)
        row, column = rng.integers(1, len(plate) - 1, 2)
        plate[row, column] += 1.0


class Life:
    """Conway's game on a torus, with a row that is born again at a random place."""

    def start(size, rng):
        return {"cells": (rng.random((size, size)) < 0.3).astype(np.uint8)}

    def advance(state, rng):
        cells = state["cells"]
        rows = np.roll(cells, 1, 0) + cells + np.roll(cells, -1, 0)
        near = np.roll(rows, 1, 1) + rows + np.roll(rows, -1, 1) - cells
        state["cells"] = ((near == 3) | ((near == 2) & (cells == 1))).astype(np.uint8)
        state["cells"][rng.integers(len(cells))] = rng.integers(0, 2, len(cells))


class Prices:
    """Many random walks, and how high and low each has been."""

    def start(size, rng):
        prices = np.full(size * size, 100.0)
        return {"prices": prices, "highest": prices.copy(), "lowest": prices.copy()}

    def advance(state, rng):
        state["prices"] *= 1.0 + 0.01 * rng.standard_normal(len(state["prices"]))
        np.maximum(state["highest"], state["prices"], out=state["highest"])
        np.minimum(state["lowest"], state["prices"], out=state["lowest"])


PROGRAMS = {"heat": Heat, "life": Life, "prices": Prices}
