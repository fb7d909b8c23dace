"""The local cluster's life: up, down, status.

A real NameNode, DataNode, ResourceManager and some NodeManagers, each a process of its own
that outlives the command. Ports are chosen at the first `up` and kept, like the data.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from tfy.errors import SpecError, UnreachableError
from tfy.yarn.cluster_health import NodeStatus, fetch_missing, fetch_nodes
from tfy.yarn.cluster_shape import (
    DEFAULT_NODES,
    MASTER_HOST,
    MAX_NODES,
    ClusterLayout,
    ClusterShape,
    MasterPorts,
    NodePorts,
    daemons_of,
    node_host,
    node_memory_mib,
)
from tfy.yarn.cluster_start import Startup
from tfy.yarn.cluster_state import UP_COMMAND, ClusterState, layout_of, load_state, save_state
from tfy.yarn.cluster_stop import Progress, stop_daemons
from tfy.yarn.daemons import Launcher
from tfy.yarn.jars import CONTAINER_JARS, DAEMON_JARS, fetch_jars, pyspark_jars, require_hadoop_version
from tfy.yarn.java import read_java
from tfy.yarn.lock import file_lock
from tfy.yarn.ports import choose_ports

UP_TIMEOUT_S = 120.0
DOWN_COMMAND = "tfy cluster down"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStatus:
    """One daemon: `state` is `running`, `dead` (it should run) or `stopped`."""

    name: str
    state: str
    pid: int | None
    address: str
    web: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The local cluster. `missing` maps daemons that are not ready to what they lack."""

    up: bool
    folder: str
    conf_dir: str
    default_fs: str
    rm_web: str
    namenode_web: str
    daemons: tuple[DaemonStatus, ...]
    nodes: tuple[NodeStatus, ...]
    missing: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpResult:
    """What `up` did: `started` names the daemons, none where the cluster was up already."""

    shape: ClusterShape
    layout: ClusterLayout
    started: tuple[str, ...]


def no_progress(message: str) -> None:
    """For callers whom progress does not interest."""


def up(
    environ: Mapping[str, str],
    *,
    nodes: int | None = None,
    progress: Progress = no_progress,
    timeout_s: float = UP_TIMEOUT_S,
) -> UpResult:
    """Start what does not run of the local cluster, and wait until all of it works.

    `nodes` is the number of NodeManagers: None keeps it, and means two the first time. The limit
    begins when the jars are there.
    """
    layout = layout_of(environ)
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file_lock(layout.lock, timeout_s=timeout_s, what=UP_COMMAND):
        old = load_state(layout)
        alive = old.alive() if old else frozenset()
        if old and alive:
            _refuse_other_size(old, nodes)
            if not old.dead(layout) and not fetch_missing(old.shape, {}):
                return UpResult(shape=old.shape, layout=layout, started=())
        progress("looking for Java and Hadoop's jars")
        java = read_java(environ)
        client_jars = pyspark_jars()
        require_hadoop_version(client_jars)
        fetched = fetch_jars(java.binary, environ, (*DAEMON_JARS, *CONTAINER_JARS))
        daemon_jars, container_jars = fetched[: len(DAEMON_JARS)], fetched[len(DAEMON_JARS) :]
        # The daemons' jars come first: theirs and the client's are one version of the same classes.
        launcher = Launcher(java, (*daemon_jars, *client_jars), layout, environ)
        state = old if old and alive else planned_state(old, nodes, ram_mib())
        startup = Startup(launcher, state, progress, time.monotonic() + timeout_s)
        started = startup.run(os_user(), (client_jars[0].parent / "*", *container_jars))
        return UpResult(shape=state.shape, layout=layout, started=started)


def planned_state(old: ClusterState | None, nodes: int | None, ram: int) -> ClusterState:
    """The state to start from when nothing runs: old ports are kept, new ones are chosen."""
    count = nodes or (len(old.shape.nodes) if old else DEFAULT_NODES)
    if not 1 <= count <= MAX_NODES:
        raise SpecError(f"--nodes {count}: 1 to {MAX_NODES} are possible")
    random = Random()
    masters = old.shape.masters if old else _choose_masters(random)
    kept = old.shape.nodes[:count] if old else ()
    added = tuple(_choose_node(number, random) for number in range(len(kept) + 1, count + 1))
    shape = ClusterShape(masters=masters, nodes=(*kept, *added), node_memory_mib=node_memory_mib(ram, count))
    return ClusterState(shape=shape, processes={})


def _choose_masters(random: Random) -> MasterPorts:
    names = MasterPorts.__dataclass_fields__.keys()
    return MasterPorts(**dict(zip(names, choose_ports([MASTER_HOST] * len(names), random), strict=True)))


def _choose_node(number: int, random: Random) -> NodePorts:
    rpc, localizer, web = choose_ports([node_host(number)] * 3, random)
    return NodePorts(rpc=rpc, localizer=localizer, web=web)


def _refuse_other_size(state: ClusterState, nodes: int | None) -> None:
    running = len(state.shape.nodes)
    if nodes is not None and nodes != running:
        raise SpecError(
            f"the local cluster is up with {running} nodes, not {nodes}: they may run containers",
            hint=f"{DOWN_COMMAND} && {UP_COMMAND} --nodes {nodes}",
        )


def down(
    environ: Mapping[str, str], *, progress: Progress = no_progress, timeout_s: float = UP_TIMEOUT_S
) -> tuple[str, ...]:
    """End what `up` started, containers included; the names of the daemons ended. Data stays.

    `timeout_s` is how long to wait for another command; each stopping has its own limit.
    """
    layout = layout_of(environ)
    if not layout.state.exists():
        return ()
    with file_lock(layout.lock, timeout_s=timeout_s, what=DOWN_COMMAND):
        state = load_state(layout)
        if state is None:
            return ()
        alive = state.alive()
        save_state(layout, stop_daemons(state, state.shape.daemon_names, layout, progress))
        return tuple(name for name in state.processes if name in alive)


def fetch_status(environ: Mapping[str, str]) -> ClusterStatus:
    """How the local cluster is now; an error where none has ever been made."""
    layout = layout_of(environ)
    state = load_state(layout)
    if state is None:
        raise UnreachableError(f"there is no local cluster in {layout.root}", hint=UP_COMMAND)
    shape = state.shape
    alive = state.alive()
    missing = fetch_missing(shape, {}) if alive else {}
    return ClusterStatus(
        up=not state.dead(layout) and not missing,
        folder=str(layout.root),
        conf_dir=str(layout.conf),
        default_fs=shape.default_fs,
        rm_web=shape.rm_web,
        namenode_web=shape.namenode_web,
        daemons=_daemon_statuses(state, layout, alive),
        nodes=(fetch_nodes(shape) if "resourcemanager" in alive else None) or (),
        missing=missing,
    )


def _daemon_statuses(
    state: ClusterState, layout: ClusterLayout, alive: frozenset[str]
) -> tuple[DaemonStatus, ...]:
    return tuple(
        DaemonStatus(
            name=daemon.name,
            # `down` forgets the processes that it ends.
            state="running"
            if daemon.name in alive
            else "dead"
            if daemon.name in state.processes
            else "stopped",
            pid=state.processes[daemon.name].pid if daemon.name in alive else None,
            address=daemon.address,
            web=daemon.web,
            log=str(layout.log(daemon.name)),
        )
        for daemon in daemons_of(state.shape, layout)
    )


def ram_mib() -> int:
    """This machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)


def os_user() -> str:
    """Who Hadoop takes us for: the system's name of the user."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise UnreachableError(
            f"the system has no name for user {os.geteuid()}, and Hadoop needs one",
            hint="add it to /etc/passwd",
        ) from error
