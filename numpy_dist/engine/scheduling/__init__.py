"""The program of a rank: where it is cut, its schedules, and their execution."""
