"""Where the ResourceManagers of a configuration listen, and whether anybody does."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from tfy.yarn.application import NoAnswerError

_PREFIX = "yarn.resourcemanager"
# YARN's own default.
_RPC_PORT = "8032"
_CONNECT_LIMIT_S = 3.0


def find_sockets(properties: Mapping[str, str], key: str, port: str) -> tuple[str, ...]:
    """The `host:port` of each ResourceManager by `yarn.resourcemanager.<key>`, `port` where none is given.

    None where the configuration does not say; with high availability, every ResourceManager's.
    """
    suffixes = [""]
    if properties.get(f"{_PREFIX}.ha.enabled", "").lower() == "true":
        names = properties.get(f"{_PREFIX}.ha.rm-ids", "").split(",")
        suffixes = [f".{name.strip()}" for name in names if name.strip()]
    found = (_find_socket(properties, key, suffix, port) for suffix in suffixes)
    return tuple(dict.fromkeys(address for address in found if address))


def _find_socket(properties: Mapping[str, str], key: str, suffix: str, port: str) -> str | None:
    host, _, given = properties.get(f"{_PREFIX}.{key}{suffix}", "").rpartition(":")
    # Nobody is reached at the address to listen on everywhere, nor at a name that was not filled in.
    if host in ("", "0.0.0.0") or host.startswith("${"):
        host = properties.get(f"{_PREFIX}.hostname{suffix}", "")
    return f"{host}:{given or port}" if host not in ("", "0.0.0.0") else None


def require_resource_manager(properties: Mapping[str, str]) -> None:
    """Raises `NoAnswerError` at once where every ResourceManager's port refuses the connection.

    Hadoop's own client would try for half a minute. Anything less certain is left to it.
    """
    addresses = find_sockets(properties, "address", _RPC_PORT)
    if addresses and all(_refuses(address) for address in addresses):
        raise NoAnswerError(
            f"no ResourceManager listens at {', '.join(addresses)}",
            hint="is it up, and does HADOOP_CONF_DIR name the right cluster?",
        )


def _refuses(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_LIMIT_S).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):
        return False
    return False
