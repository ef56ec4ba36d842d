"""Plans of jobs: what a program would take and send on any number of ranks, and how long that may last."""
