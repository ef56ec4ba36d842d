"""What stands for ssh between the hosts of `namespaces`: `shell.py [options] HOST COMMAND...`, and its server.

As ssh's, the command is run by a shell, in another folder and without this side's variables, and its streams go over
the network: of a host that vanishes, nothing is heard any more. It needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
from typing import IO

PORT = 2222
EXIT = 3  # after the numbers of the streams: what follows is the exit code
LOST = 255  # the exit code where the other host cannot be reached
PIECE = 1 << 16


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError
        data += piece
    return data


def _send(connection: socket.socket, lock: threading.Lock, number: int, data: bytes) -> None:
    with lock:
        connection.sendall(bytes([number]) + len(data).to_bytes(4, "big") + data)


# -- the side of the host that is called -------------------------------------------------------------------------------


class Server(socketserver.ThreadingTCPServer):
    """Runs commands on this host."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 64


class Call(socketserver.BaseRequestHandler):
    """One command."""

    def handle(self) -> None:
        """Run it, with its streams at the other end of the connection."""
        size = int.from_bytes(_receive(self.request, 4), "big")
        command = _receive(self.request, size).decode()
        environment = {"PATH": os.defpath, "HOME": "/root", "SSH_CONNECTION": "10.0.0.0 0 10.0.0.0 22"}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            ["sh", "-c", command], cwd="/", env=environment, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
        ) as process:
            lock = threading.Lock()
            threading.Thread(target=self._feed, args=(process.stdin,), daemon=True).start()
            readers = [
                threading.Thread(target=self._pass_on, args=(lock, number, stream), daemon=True)
                for number, stream in ((1, process.stdout), (2, process.stderr))
            ]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            code = process.wait()
        try:
            _send(self.request, lock, EXIT, bytes([code & 0xFF]))
        except OSError:
            return  # the other side has gone

    def _feed(self, stream: IO[bytes]) -> None:
        try:
            while piece := self.request.recv(PIECE):
                stream.write(piece)
            stream.close()
        except OSError:
            return  # one of the two has ended

    def _pass_on(self, lock: threading.Lock, number: int, stream: IO[bytes]) -> None:
        try:
            while piece := stream.read(PIECE):
                _send(self.request, lock, number, piece)
        except OSError:
            return  # the other side has gone


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def _cover(shown: list[str]) -> None:
    """Give this host folders of its own; of this machine's folders below them, only some are shown."""
    below = [path for path in dict.fromkeys(map(os.path.realpath, shown)) if path.startswith(("/tmp/", "/dev/shm/"))]
    kept = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in below}
    for folder in ("/dev/shm", "/tmp"):
        _run("mount", "-t", "tmpfs", "tmpfs", folder)
    for path, descriptor in kept.items():
        if not os.path.exists(path):
            os.makedirs(path)
            subprocess.run(
                ["mount", "--no-canonicalize", "--bind", f"/proc/self/fd/{descriptor}", path],
                check=True,
                pass_fds=[descriptor],
            )
        os.close(descriptor)
    _run("mount", "-t", "proc", "proc", "/proc")
    _run("mount", "-t", "sysfs", "sysfs", "/sys")  # which shows the interfaces of the namespace


def _set_up(hostname: str, address: str, addresses: dict[str, str], shown: list[str]) -> None:
    _cover(shown)
    socket.sethostname(hostname)
    names = "/tmp/.hosts"
    with open(names, "w") as file:
        file.writelines(f"{where} {name}\n" for name, where in {"localhost": "127.0.0.1", **addresses}.items())
    _run("mount", "--bind", names, "/etc/hosts")
    os.unlink(names)
    deadline = time.monotonic() + 60
    while not os.path.exists("/sys/class/net/eth0"):
        if time.monotonic() > deadline:
            raise TimeoutError("no interface")
        time.sleep(0.005)
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")


def serve(facts: str) -> None:
    """Be the first process of a host: set it up, answer calls, and wait for processes that others leave behind."""
    _set_up(**json.loads(facts))
    if os.fork():
        try:
            while True:
                os.wait()
        except ChildProcessError:
            return
    with Server(("0.0.0.0", PORT), Call) as server:
        print("ready", flush=True)
        server.serve_forever()


# -- the side that calls -----------------------------------------------------------------------------------------------


def call(host: str, command: str) -> int:
    """Run a command on a host; the exit code."""
    try:
        connection = socket.create_connection((host, PORT), 10)
        connection.settimeout(None)
        words = command.encode()
        connection.sendall(len(words).to_bytes(4, "big") + words)
        threading.Thread(target=_read, args=(connection,), daemon=True).start()
        while True:
            number, *size = _receive(connection, 5)
            data = _receive(connection, int.from_bytes(bytes(size), "big"))
            if number == EXIT:
                return data[0]
            os.write(number, data)
    except OSError as problem:
        print(f"{host}: {problem}", file=sys.stderr)
        return LOST


def _read(connection: socket.socket) -> None:
    try:
        while piece := os.read(0, PIECE):
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other host has gone


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "serve":
        serve(words[1])
    else:
        while words[0].startswith("-"):
            words.pop(0)
        code = call(words[0], " ".join(words[1:]))
        sys.stdout.flush()
        os._exit(code)
