"""Child processes that are asked something: they may crash or hang, and this process goes on."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from numpy_dist.cli.doctor.facts import ChildAnswer
from numpy_dist.cli.library import outside_jobs

GRACE = 2.0  # seconds for a child to end what it has started

# A line that names an error: what stands around it are stacks, and what other ranks did.
_ERROR = re.compile(r"(?:\[rank \d+\] )?[\w.]*(?:Error|Exception|Exit)\b|numpy-dist: |Abort\(")


def ask(arguments: Sequence[str], timeout: float, **environment: str) -> ChildAnswer:
    """Run this interpreter with some arguments.

    Parameters
    ----------
    arguments : sequence of str
        Such as ``("-m", "module")``.
    timeout : float
        Seconds until it is ended, with all that it has started in its session.
    **environment : str
        Variables beside those of this process.

    Returns
    -------
    ChildAnswer
        The lines on its stdout, also where there was a problem.
    """
    # What runs in the folder that the user stands in must not come before the standard library.
    variables = outside_jobs(dict(os.environ)) | {"PYTHONSAFEPATH": "1"} | environment
    # Files, not pipes: somebody who is left behind could keep a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, *arguments],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code: int | None = child.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(child)
        output.seek(0)
        errors.seek(0)
        lines = _lines(output.read())
        return ChildAnswer(lines, _problem(code, timeout, _lines(errors.read())))


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child: politely, as `numpy-dist run` then ends its ranks; then whatever is left of its session."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
    with contextlib.suppress(ProcessLookupError):  # nothing is left
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _lines(text: bytes) -> list[str]:
    return [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]


def _problem(code: int | None, timeout: float, errors: Sequence[str]) -> str | None:
    said = next((line for line in reversed(errors) if _ERROR.match(line)), errors[-1] if errors else "")
    if code is None:
        return f"no answer within {timeout:g} s" + (f" ({said})" if said else "")
    if code < 0:
        return f"ended by signal {-code} ({signal.strsignal(-code)})" + (f" ({said})" if said else "")
    if code:
        return said or f"exit code {code}"
    return None
