"""Hosts that are namespaces of this machine, joined by a switch: each has a name, an address and processes of its own.

A host has its own network interface, hostname, process list, `/dev/shm` and `/tmp`, and may have another monotonic
clock; other folders are those of this machine, as on a cluster with a shared file system. Each answers `shell.py`,
which stands for ssh, over the network. Nothing has a name on this machine outside of the processes that are the hosts'
first ones, so all of it is gone with them, and they are killed when the process that made them ends, however it does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy_dist.cli import processes

SHELL = Path(__file__).with_name("shell.py")
TOOLS = ("ip", "mount", "nsenter", "sh", "unshare")
INTERFACE = "eth0"
CLOCK = 1_000_000  # seconds by which another clock is ahead
OWN = "--net --uts --ipc --mount --pid --fork --kill-child".split()
PATIENCE = 60.0


def reason_against() -> str | None:
    """Why there can be no such hosts here; None where there can."""
    if not sys.platform.startswith("linux"):
        return "hosts are emulated by namespaces of Linux"
    if os.geteuid():
        return "only root can make network namespaces with interfaces"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    script = "mount -t tmpfs tmpfs /dev/shm && mount -t proc proc /proc && ip link add end0 type veth peer name end1"
    tried = subprocess.run(["unshare", *OWN, "sh", "-c", script], capture_output=True, text=True)
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else None


def has_clocks() -> bool:
    """Whether hosts can have another monotonic clock."""
    tried = ["unshare", "--time", "--monotonic", "1", "--fork", "true"]
    return not subprocess.run(tried, capture_output=True).returncode


def _held(command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """A process that is killed when this one ends."""
    return subprocess.Popen(command, text=True, preexec_fn=processes.end_with_parent, **options)


@dataclass
class Host:
    """One host.

    Attributes
    ----------
    name : str
        Which the others resolve to its address.
    hostname : str
        What it calls itself.
    address : str
    process : Popen
        What holds its namespaces.
    first : int
        Its first process, as this machine numbers it.
    """

    name: str
    hostname: str
    address: str
    process: subprocess.Popen[str]
    first: int = 0

    def command(self, words: Sequence[str], folder: Path) -> list[str]:
        """What runs a command on this host, in a folder."""
        return ["nsenter", "-t", str(self.first), "-n", "-u", "-i", "-m", "-p", "-T", f"--wdns={folder}", "--", *words]

    def start(self, words: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
        """Start a command on this host; its standard streams are pipes."""
        pipe = subprocess.PIPE
        return _held(self.command(words, folder), env=environment, stdin=pipe, stdout=pipe, stderr=pipe)

    def processes(self) -> dict[int, str]:
        """The processes that run here, beside those that answer `shell.py`, as this machine numbers them."""
        inside = os.stat(f"/proc/{self.first}/ns/pid").st_ino
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().decode().replace("\0", " ")
                if os.stat(folder / "ns/pid").st_ino == inside and words and f"{SHELL} serve" not in words:
                    found[int(folder.name)] = words
            except OSError:  # it has ended meanwhile
                continue
        return found

    def files(self) -> list[str]:
        """What lies in this host's `/dev/shm` and `/tmp`; not what of this machine is shown there."""
        root = Path(f"/proc/{self.first}/root")
        found = []
        folders = [root / "dev/shm", root / "tmp"]
        for folder in folders:
            for path in folder.iterdir():
                if not path.is_dir() or path.is_symlink():
                    found.append(str(path.relative_to(root)))
                elif not path.is_mount():
                    folders.append(path)
        return found


@dataclass
class Network:
    """Hosts on one switch.

    Parameters
    ----------
    names : dict of str to str
        The hostnames of the hosts, by the names under which the others find them.
    shared : Path
        A folder that all of them see.
    clocks : set of str
        The names of those whose monotonic clock is ahead.
    """

    names: dict[str, str]
    shared: Path
    clocks: frozenset[str] = frozenset()
    hosts: dict[str, Host] = field(default_factory=dict)

    def __enter__(self) -> Network:
        self._switch = _held(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def close(self) -> None:
        """Kill everything that runs on the hosts, which are gone then."""
        held = [host.process for host in self.hosts.values()] + [self._switch]
        for process in held:
            process.kill()
        for process in held:
            process.communicate()
        for host in self.hosts.values():
            wait_for(lambda first=host.first: not first or not os.path.exists(f"/proc/{first}"))  # type: ignore[misc]

    def vanish(self, name: str) -> None:
        """Have a host end without a word to the others, as by a power cut."""
        self.disconnect(name)
        self.hosts[name].process.kill()
        self.hosts[name].process.wait()

    def disconnect(self, name: str) -> None:
        """Take a host off the network; what runs there goes on."""
        self._ip("link", "set", self._port(name), "down")

    def _make(self) -> None:
        own = os.stat("/proc/self/ns/net").st_ino
        wait_for(lambda: os.stat(f"/proc/{self._switch.pid}/ns/net").st_ino != own)
        self._ip("link", "add", "switch", "type", "bridge")
        self._ip("link", "set", "switch", "up")
        root = Path(__file__).resolve().parents[2]
        addresses = {name: f"10.76.54.{number}" for number, name in enumerate(self.names, 1)}
        for name, hostname in self.names.items():
            clock = ["--time", "--monotonic", str(CLOCK), "--boottime", str(CLOCK)] if name in self.clocks else []
            facts = {
                "hostname": hostname,
                "address": addresses[name],
                # Each finds itself by its own name, as a host's own file of names has it.
                "addresses": addresses | {hostname: addresses[name]},
                "shown": [str(self.shared), str(root), sys.prefix, sys.base_prefix],
            }
            command = ["unshare", *OWN, *clock, sys.executable, "-IS", str(SHELL), "serve", json.dumps(facts)]
            process = _held(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.hosts[name] = Host(name, hostname, addresses[name], process)
        for name, host in self.hosts.items():
            children = Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children")
            wait_for(lambda children=children: bool(children.read_text()))  # type: ignore[misc]
            host.first = int(children.read_text())
            port, peer = self._port(name), ["peer", "name", INTERFACE, "netns", str(host.first)]
            self._ip("link", "add", port, "type", "veth", *peer)
            self._ip("link", "set", port, "master", "switch", "up")
        for host in self.hosts.values():
            assert host.process.stdout is not None
            if host.process.stdout.readline() != "ready\n":
                raise RuntimeError(f"host {host.name} has ended")

    def _port(self, name: str) -> str:
        return f"port{list(self.names).index(name)}"

    def _ip(self, *words: str) -> None:
        subprocess.run(["nsenter", "-t", str(self._switch.pid), "-n", "ip", *words], check=True)


def wait_for(holds: Callable[[], object]) -> None:
    """Wait until something holds, or raise TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("a host does not come up, or something on it does not end")
        time.sleep(0.005)


def signal_inside(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to the command that `Host.start` runs; nsenter does not pass them on."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    processes.send(map(int, children), number)
