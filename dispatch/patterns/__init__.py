"""Patterns: the few ways in which functions of NumPy are computed on shards, one module for each."""
