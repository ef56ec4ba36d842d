"""Logistic regression by gradient descent, in plain NumPy."""

import numpy as np


def probability(features, weights):
    return 1 / (1 + np.exp(-(features @ weights)))


def fit(features, answers, steps, rate=0.5):
    """The probabilities after some steps, the mean loss, and the share of right answers."""
    weights = np.zeros(features.shape[1])
    for _ in range(steps):
        error = probability(features, weights) - answers
        weights = weights - rate / len(answers) * (features.T @ error)
    likely = probability(features, weights)
    loss = -np.mean(answers * np.log(likely) + (1 - answers) * np.log(1 - likely))
    return {"probability": likely, "loss": loss, "right": np.mean((likely > 0.5) == (answers > 0.5))}
