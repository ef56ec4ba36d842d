"""``python -m numpy_dist.notebook -f FILE``: one rank of a notebook, started by ``numpy-dist kernel start``."""

from __future__ import annotations

import os
import sys

from numpy_dist.comm import launchers
from numpy_dist.comm.supervision.tracebacks import shorten_shown


def main() -> None:
    """Be the kernel, or one of its other ranks, until the notebook ends."""
    # The folder of the notebook must not come before the standard library while the kernel starts, which adds it later.
    sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]
    if launchers.launched_ranks(os.environ) is None:
        from ipykernel.kernelapp import IPKernelApp

        application = IPKernelApp.instance()
        application.initialize()
        shorten_shown()
        application.start()
        return
    from numpy_dist.comm.detect import get_communicator
    from numpy_dist.comm.mpi import MpiCommunicator
    from numpy_dist.notebook.channel import RankLink, connect

    comm = get_communicator()
    assert isinstance(comm, MpiCommunicator)
    side = connect(comm)
    if isinstance(side, RankLink):
        from numpy_dist.notebook.rank_shell import run_rank

        run_rank(side)
        return
    from numpy_dist.notebook.kernel import RootApplication

    application = RootApplication.instance(hub=side)
    application.initialize()
    shorten_shown()
    side.rest()
    application.start()
    application.kernel.leave()  # the user may have said `exit`


if __name__ == "__main__":
    main()
