"""Ending the local cluster's daemons, in the order in which they need one another, and their containers."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tfy.errors import UnreachableError
from tfy.yarn.cluster_shape import ClusterLayout, node_name
from tfy.yarn.cluster_state import ClusterState
from tfy.yarn.processes import ProcessId, kill_containers, stop

# A NodeManager first ends its containers, which may take 5 s, and puts their logs on HDFS.
NODEMANAGER_TERM_S = 30.0
MASTER_TERM_S = 15.0
# Without a ResourceManager it waits, and in vain, to take leave of it.
LONE_NODEMANAGER_TERM_S = 3.0
MASTERS = ("resourcemanager", "datanode")
NAMENODE = ("namenode",)

Progress = Callable[[str], None]


def stop_daemons(
    state: ClusterState, names: Collection[str], layout: ClusterLayout, progress: Progress
) -> ClusterState:
    """End the daemons `names`, and the containers of the NodeManagers among them; the state without them.

    NodeManagers come first, while the ResourceManager hears them and HDFS takes logs; the NameNode is last.
    """
    alive = state.alive()
    numbers = range(1, len(state.shape.nodes) + 1)
    nodes = tuple(node_name(number) for number in numbers)
    node_term_s = NODEMANAGER_TERM_S if "resourcemanager" in alive else LONE_NODEMANAGER_TERM_S
    survivors: list[ProcessId] = []
    for group, term_s in ((nodes, node_term_s), (MASTERS, MASTER_TERM_S), (NAMENODE, MASTER_TERM_S)):
        ending = [name for name in group if name in names and name in alive]
        if ending:
            progress("stopping " + ", ".join(ending))
        survivors += stop([state.processes[name] for name in ending], term_timeout_s=term_s)
    for number in numbers:
        if node_name(number) in names:
            survivors += kill_containers(layout.node(number))
    if survivors:
        pids = ", ".join(str(process.pid) for process in survivors)
        raise UnreachableError(f"processes {pids} do not end, not even by SIGKILL")
    return state.without(frozenset(names))
