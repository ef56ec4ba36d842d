"""k-means clustering, in plain NumPy."""

import numpy as np


def nearest(points, centres):
    """The number of the nearest centre of each point."""
    distances = [((points - centre) ** 2).sum(axis=1) for centre in centres]
    return np.stack(distances, axis=1).argmin(axis=1)


def cluster(points, centres, steps):
    """Move each centre to the mean of the points that are nearest to it, again and again."""
    for _ in range(steps):
        labels = nearest(points, centres)
        moved = []
        for k, centre in enumerate(centres):
            members = labels == k
            count = np.count_nonzero(members)
            total = np.where(members[:, None], points, 0.0).sum(axis=0)
            moved.append(total / count if count else centre)
        centres = np.stack(moved)
    labels = nearest(points, centres)
    return {"labels": labels, "spread": np.sqrt(((points - np.mean(points, axis=0)) ** 2).sum() / len(points))}
