"""A port of this host, held for TensorFlow's server from before anyone is told of it."""

from __future__ import annotations

import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HeldPort:
    """A port that is bound but not listened on.

    With SO_REUSEPORT on both sides TensorFlow's server (TF_GRPC_REUSE_PORT=1) binds it while
    it is still held, so no one else can take it in between (tensorflow#21492). The kernel
    never hands out a held port to another bind to port 0.
    """

    number: int
    _socket: socket.socket

    def release(self) -> None:
        """Lets the port go."""
        self._socket.close()


def hold_port() -> HeldPort:
    """Holds a free port on all interfaces of this host."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("", 0))
    return HeldPort(held.getsockname()[1], held)
