"""Supervision of a job: its end, its signals, and ranks that wait for ever."""
