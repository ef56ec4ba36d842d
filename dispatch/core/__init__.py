"""The core of dispatch: NumPy's protocols, the table of implementations, the fallback, and explanations."""
