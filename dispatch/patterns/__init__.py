"""Patterns: the few ways in which functions are computed on shards, one module for each.

Each module says what its pattern needs of the operands' layouts, what a rank computes, what is communicated, and which
layout the result has. The functions in `dispatch.functions` and those for authors (`numpy_dist.authoring`) are written
with them.
"""
