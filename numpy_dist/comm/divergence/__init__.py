"""Divergence: ranks that do not run the same program are found, and told where they part."""
