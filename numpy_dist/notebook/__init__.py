"""Jupyter notebooks whose cells run on all ranks of a job (docs/notebooks.md).

Rank 0 is an IPython kernel (`kernel`). What it is asked to do it hands to the other ranks, whose shells (`rank_shell`)
do the same, over sockets of their own (`channel`): the program's communicator is not used, and a rank that waits for
the next cell blocks in a socket. When a cell is done each rank reports how it went and how far it has come; all go on
from there, or with a new communicator where they have parted (`settling`).
"""
