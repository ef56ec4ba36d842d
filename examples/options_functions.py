"""Prices of European options by the formula of Black and Scholes, in plain NumPy."""

import numpy as np


def normal(x):
    """The cumulative normal distribution, by the approximation 26.2.17 of Abramowitz and Stegun."""
    t = 1 / (1 + 0.2316419 * np.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * series
    return np.where(x > 0, 1 - tail, tail)


def prices(spot, strike, years, rate=0.02, volatility=0.3):
    """The prices of a call and a put, and the mean of both."""
    root = volatility * np.sqrt(years)
    first = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / root
    second = first - root
    discounted = strike * np.exp(-rate * years)
    call = spot * normal(first) - discounted * normal(second)
    put = discounted * normal(-second) - spot * normal(-first)
    return {"call": call, "put": put, "mean call": call.mean(), "mean put": put.mean()}
