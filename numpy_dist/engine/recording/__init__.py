"""Recording: NumPy's calls become statements."""
