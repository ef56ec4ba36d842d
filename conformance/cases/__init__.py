"""The cases, one module for each topic of NumPy's documentation; each has a `Topic` called ``TOPIC``."""
