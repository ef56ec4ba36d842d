"""What a cell shows when rank 0, which is the kernel, has died: an error, published in its place by its launcher.

Rank 0 keeps the header of the request that it runs in a file beside Jupyter's connection file. The launcher, which
outlives it, opens the kernel's socket for outputs once more and answers that request.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["forget_request", "note_request", "publish"]

_SECONDS = 10.0  # for windows to find the socket again, on a busy machine
_LINGER_MILLISECONDS = 5000


def _file(connection_file: str) -> Path:
    return Path(f"{connection_file}.request")


def note_request(connection_file: str, header: Mapping[str, object]) -> None:
    """Rank 0, which calls this, begins a request with this header."""
    noted = {"header": header, "pid": os.getpid()}
    with suppress(OSError):  # a full disk: then there will be no last words, but there is a notebook
        _file(connection_file).write_text(json.dumps(noted, default=str))


def forget_request(connection_file: str) -> None:
    """Rank 0 has finished it."""
    with suppress(OSError):
        _file(connection_file).unlink(missing_ok=True)


def publish(connection_file: str) -> bool:
    """End the cell that rank 0 was running with an error; whether there was one, and somebody listened.

    Parameters
    ----------
    connection_file : str
        Jupyter's, whose addresses nobody else uses now.
    """
    try:
        noted = json.loads(_file(connection_file).read_text())
        connection = json.loads(Path(connection_file).read_text())
    except (OSError, ValueError):  # it ran nothing, or Jupyter is gone, too
        return False
    finally:
        forget_request(connection_file)
    if any(name.startswith("curve") for name in connection):  # encrypted: the window would not trust this process
        return False
    import zmq
    from jupyter_client.session import Session

    header = noted["header"]
    text = (
        f"rank 0 (process {noted['pid']}), which is the kernel, has died: it was killed, has crashed, or the system "
        "was out of memory. The other ranks have ended. Restart the kernel, if Jupyter has not, and run the cells again"
    )
    session = Session(
        key=connection["key"].encode(), signature_scheme=connection["signature_scheme"], session=header["session"]
    )
    with zmq.Context() as context, context.socket(zmq.XPUB) as socket:
        socket.linger = _LINGER_MILLISECONDS
        if not _bound(socket, connection):
            return False
        if not socket.poll(int(1000 * _SECONDS), zmq.POLLIN):  # a window subscribes
            return False
        content = {"ename": "RankError", "evalue": text, "traceback": [f"RankError: {text}"]}
        for kind, told in (("error", content), ("status", {"execution_state": "idle"})):
            session.send(socket, kind, told, parent={"header": header}, ident=kind.encode())
    return True


def _bound(socket: Any, connection: Mapping[str, object]) -> bool:
    """Open the socket where the kernel had its own, which the system may keep for a moment."""
    import zmq

    between = "-" if connection["transport"] == "ipc" else ":"
    address = f"{connection['transport']}://{connection['ip']}{between}{connection['iopub_port']}"
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            socket.bind(address)
            return True
        except zmq.ZMQError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
