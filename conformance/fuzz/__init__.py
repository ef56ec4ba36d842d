"""Differential fuzzing: whole random programs, run on ndarrays and on arrays under test.

`writer` and `statements` write programs, `interpreter` runs them on both sides, `comparison` tells differences,
`shrinking` makes what was found small, `job` keeps the ranks that run programs, `driver` is the loop over all that.
"""
