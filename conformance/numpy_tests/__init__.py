"""NumPy's own tests, as its package has them, on other arrays than ndarrays."""
