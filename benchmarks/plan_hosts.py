"""Plans beside jobs on two hosts, which are namespaces of this machine: `plan.py` is run on one of them, for both.

Options are those of `plan.py`; it needs root, and MPICH. Both hosts have the same processors and memory.

    python benchmarks/plan_hosts.py --wall --parts --rounds 7
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.hosts.namespaces import SHELL, Network, reason_against


def main() -> int:
    if (reason := reason_against()) is not None:
        print(f"not run: {reason}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder)
        shell = shared / "shell"
        shell.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {SHELL} "$@"\n')
        shell.chmod(0o755)
        environment = os.environ | {
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": str(shell),
            "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
            "NUMPY_DIST_CACHE_DIR": os.environ.get("NUMPY_DIST_CACHE_DIR", str(shared / "kernels")),
        }
        with Network({"a": "a", "b": "b"}, shared) as network:
            command = [sys.executable, str(Path(__file__).with_name("plan.py")), "--hosts", "a,b", *sys.argv[1:]]
            words = network["a"].command(command, shared)
            return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
