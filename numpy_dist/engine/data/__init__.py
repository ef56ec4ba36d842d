"""Data that comes in and goes out: arrays of the user's, gathers, files, windows and scratch memory."""
