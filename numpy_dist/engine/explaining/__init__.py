"""Explanations: programs and plans as text, before they run and after."""
