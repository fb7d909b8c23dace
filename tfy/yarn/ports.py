"""Ports on loopback addresses: choosing free ones, and asking who has one."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

from tfy.errors import UnreachableError

# Below the range from which systems take the ports of outgoing connections (Linux: 32768 and up): a
# port from there could be busy at the next start.
FIRST_PORT, LAST_PORT = 20000, 31999
LISTEN = "0A"


def choose_ports(hosts: Sequence[str], random: Random) -> tuple[int, ...]:
    """A free port on each of `hosts`, no two the same."""
    candidates = random.sample(range(FIRST_PORT, LAST_PORT + 1), LAST_PORT + 1 - FIRST_PORT)
    ports: list[int] = []
    for port in candidates:
        if len(ports) == len(hosts):
            break
        if is_free(hosts[len(ports)], port):
            ports.append(port)
    if len(ports) < len(hosts):
        raise UnreachableError(f"no {len(hosts)} ports are free between {FIRST_PORT} and {LAST_PORT}")
    return tuple(ports)


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        # As Java does: connections that have ended do not count.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, port))
            server.listen(1)
        except OSError:
            return False
    return True


def accepts(host: str, port: int) -> bool:
    """Whether a server listens there."""
    with ExitStack() as stack:
        try:
            stack.enter_context(socket.create_connection((host, port), timeout=1.0))
        except OSError:
            return False
        return True


def port_owner(port: int) -> str | None:
    """Who listens on `port`, as `process 12 (python3 -m http.server)`, or None where it cannot be told."""
    wanted = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for folder in Path("/proc").glob("[0-9]*"):
        # Processes end while one looks, and others' files are closed to us.
        with suppress(OSError):
            if any(str(file.readlink()) in wanted for file in (folder / "fd").iterdir()):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                return f"process {folder.name} ({command.strip()[:80]})"
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]
