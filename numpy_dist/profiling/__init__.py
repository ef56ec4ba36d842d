"""Profiles of array programs: what each rank did when, as a trace, as a page, and in words."""
