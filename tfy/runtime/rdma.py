"""RDMA for NCCL's collectives: what this host has, what NCCL is told, and what it then says it uses.

NCCL chooses its network on each host by itself. Where one host has a device and another has none, the
tasks wait for one another for ever (NVIDIA/nccl#234), so the choice is made here, alike on all hosts,
from what every task's host has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfy.errors import StartError

SYSFS = Path("/sys/class/infiniband")
INFINIBAND, ROCE = "InfiniBand", "RoCE"

_ACTIVE = "4: ACTIVE"
# An RNIC speaks iWARP, which NCCL does not.
_CHANNEL_ADAPTER = "1: CA"
_LINKS = {"InfiniBand": INFINIBAND, "Ethernet": ROCE}
_IPV4_GID = re.compile(r"(?:0000:){5}ffff:(?!0000:0000)[0-9a-f]{4}:[0-9a-f]{4}")


@dataclass(frozen=True, slots=True)
class Port:
    """One port of an RDMA device. `link` is InfiniBand or RoCE, or None where NCCL cannot use it.

    `gids` are the indexes of its GIDs that are RoCE v2 with an IPv4 address: those that are routed.
    """

    device: str
    number: int
    link: str | None
    state: str
    gids: tuple[int, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether NCCL can use it now."""
        return self.link is not None and self.state == _ACTIVE

    @property
    def name(self) -> str:
        """As NCCL names it: `mlx5_0:1`."""
        return f"{self.device}:{self.number}"


def find_ports(root: Path = SYSFS) -> tuple[Port, ...]:
    """All ports of this host's RDMA devices, as the kernel shows them below `root`; none without any."""
    paths = sorted(root.glob("*/ports/*"), key=lambda path: (path.parent.parent.name, int(path.name)))
    return tuple(_read_port(path) for path in paths)


def _read_port(path: Path) -> Port:
    device = path.parent.parent
    link = _LINKS.get(_read(path / "link_layer"))
    if _read(device / "node_type") not in (_CHANNEL_ADAPTER, ""):
        link = None
    return Port(
        device=device.name,
        number=int(path.name),
        link=link,
        state=_read(path / "state"),
        gids=_read_gids(path) if link == ROCE else (),
    )


def _read_gids(path: Path) -> tuple[int, ...]:
    indexes = sorted(int(entry.name) for entry in (path / "gids").glob("*"))
    return tuple(
        index
        for index in indexes
        if _read(path / "gid_attrs" / "types" / str(index)) == "RoCE v2"
        and _IPV4_GID.fullmatch(_read(path / "gids" / str(index)))
    )


def _read(path: Path) -> str:
    """A file of one line; empty where there is none, or where the kernel has no answer (an unused GID)."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def list_links(ports: tuple[Port, ...]) -> tuple[str, ...]:
    """The kinds of link that this host can use: what a task tells the others of its host."""
    return tuple(sorted({port.link for port in ports if port.usable and port.link is not None}))


def explain_missing(mode: str, gpus: int, ports: tuple[Port, ...]) -> str | None:
    """Why a task that requires RDMA cannot start on this host, or None where it can."""
    if mode != "required" or not gpus or list_links(ports):
        return None
    return f"rdma: required, but this host has no RDMA port that NCCL can use: {_describe_ports(ports)}"


def _describe_ports(ports: tuple[Port, ...]) -> str:
    if not ports:
        return "it has no RDMA device at all"
    return ", ".join(
        f"{port.name} is {port.state.partition(': ')[2] or 'in no known state'}"
        + ("" if port.link else " and neither InfiniBand nor RoCE")
        for port in ports
    )


def choose_link(links: Mapping[str, tuple[str, ...]]) -> str | None:
    """The kind of link that the hosts of all tasks have (task → its host's links), InfiniBand first."""
    for link in (INFINIBAND, ROCE):
        if links and all(link in own for own in links.values()):
            return link
    return None


def make_rdma_env(
    mode: str, gpus: int, ports: tuple[Port, ...], links: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, str], str]:
    """NCCL's settings for one task, and the sentence for its log: which transport is asked for.

    `ports` are this host's, `links` those of all tasks that have GPUs, this one's among them, by task.
    What job.yaml's `env` sets goes over these. Nothing is set for a task without GPUs. Raises `StartError`
    where RDMA is required and the hosts have no kind of link in common.
    """
    if not gpus:
        return {}, ""
    telling = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
    tcp = {"NCCL_IB_DISABLE": "1"}
    if mode == "off":
        return tcp, "NCCL: asked for TCP (rdma: off)"
    link = choose_link(links)
    used = tuple(port for port in ports if port.usable and port.link == link)
    if link is None or not used:
        if mode == "required":
            raise StartError(
                f"rdma: required, but the tasks' hosts have no RDMA link in common: {_describe_links(links)}",
                hint="tasks.worker.node_label keeps tasks to hosts of one kind",
            )
        lacking = ", ".join(task for task, own in links.items() if not own)
        why = f"the hosts of {lacking} have no active RDMA port" if lacking else "hosts differ in their links"
        return tcp | telling, f"NCCL: asked for TCP: {why} (rdma: {mode})"
    env = {"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "=" + ",".join(port.name for port in used), **telling}
    index = find_gid_index(used)
    if index is not None:
        env["NCCL_IB_GID_INDEX"] = str(index)
    if mode == "required":
        # NCCL fails with this where it cannot, and does not fall back to TCP.
        env["NCCL_NET"] = "IB"
    names = ", ".join(port.name for port in used)
    return env, f"NCCL: asked for RDMA over {link} by {names} (rdma: {mode})"


def _describe_links(links: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{task} has {' and '.join(own) or 'none'}" for task, own in links.items())


def find_gid_index(ports: tuple[Port, ...]) -> int | None:
    """The one GID index that is right for all these ports, or None where there is no one such.

    NCCL from 2.21 on chooses by itself for each port; earlier ones take index 0, which is not routed.
    """
    found = {port.gids for port in ports}
    if len(found) != 1 or any(port.link != ROCE for port in ports):
        return None
    (gids,) = found
    return gids[0] if len(gids) == 1 else None


@dataclass(frozen=True, slots=True)
class NcclTransport:
    """The network that NCCL says it uses between hosts: `IB` (InfiniBand and RoCE), `Socket`, or a
    plugin's name; and its devices, as `mlx5_0:1/RoCE` or `eth0:10.0.0.1<0>`, where it names them."""

    network: str
    devices: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """For a person."""
        kind = {"IB": "RDMA", "Socket": "TCP"}.get(self.network, "a plugin of its own")
        by = f" by {', '.join(self.devices)}" if self.devices else ""
        return f"NCCL uses {kind} ({self.network}){by}"


# NCCL 2.5 and later say the network, all say the devices.
_NETWORK = re.compile(r"NCCL INFO Using network (?P<network>\S+)")
_DEVICES = re.compile(r"NCCL INFO NET/(?P<network>IB|Socket) ?: Using (?P<devices>\[\d+\][^;\n]*)")
_DEVICE = re.compile(r"\[\d+\](\S+)")


def parse_nccl_log(text: str) -> NcclTransport | None:
    """Which network NCCL uses, from its lines in a task's log (NCCL_DEBUG=INFO); None while it says none.

    With several communicators the last one counts: they share their devices.
    """
    devices = {
        found["network"]: tuple(_DEVICE.findall(found["devices"])) for found in _DEVICES.finditer(text)
    }
    networks = [found["network"] for found in _NETWORK.finditer(text)] or list(devices)
    if not networks:
        return None
    return NcclTransport(networks[-1], devices.get(networks[-1], ()))
