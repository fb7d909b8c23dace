"""Addresses for clusters of test processes."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_addresses(count: int) -> list[str]:
    """Addresses on this host that nobody listened on just now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{server.getsockname()[1]}" for server in sockets]
