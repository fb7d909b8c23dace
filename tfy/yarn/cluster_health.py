"""Asking the local cluster's daemons how they are, by their own web addresses."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfy.errors import UnreachableError
from tfy.yarn.cluster_shape import MASTER_HOST, ClusterShape, node_host, node_name

ASK_TIMEOUT_S = 5.0
NAMENODE_BEAN = "Hadoop:service=NameNode,name=FSNamesystemState"
DATANODE_BEAN = "Hadoop:service=DataNode,name=DataNodeInfo"
OPERATIONAL = "Operational"
RUNNING = "RUNNING"
SHUTDOWN = "SHUTDOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """A NodeManager as the ResourceManager sees it."""

    id: str
    host: str
    state: str
    containers: int
    used_mib: int
    memory_mib: int
    used_vcores: int
    vcores: int
    heard_ms: int
    """When it last spoke, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class HdfsStatus:
    """The NameNode's word for its state, and how many DataNodes live."""

    state: str
    live_datanodes: int


def fetch_hdfs(shape: ClusterShape) -> HdfsStatus | None:
    """How HDFS is; None where the NameNode does not answer."""
    bean = _ask_bean(shape.namenode_web, NAMENODE_BEAN)
    if "FSState" not in bean:
        return None
    return HdfsStatus(bean["FSState"], int(bean["NumLiveDataNodes"]))


def is_datanode_registered(shape: ClusterShape) -> bool:
    """Whether the DataNode itself says so: for the NameNode a dead one lives on for ten minutes."""
    bean = _ask_bean(f"http://{MASTER_HOST}:{shape.masters.datanode_web}", DATANODE_BEAN)
    # A list, as JSON text, of what it is to each NameNode.
    actors = json.loads(bean.get("BPServiceActorInfo") or "[]")
    return bool(actors) and all(actor["ActorState"] == RUNNING for actor in actors)


def fetch_nodes(shape: ClusterShape) -> tuple[NodeStatus, ...] | None:
    """The nodes that the ResourceManager knows; None where it does not answer.

    It remembers for ever what joined from elsewhere and has left again: such a node is none of the cluster's.
    """
    own = {node_host(number) for number in range(1, len(shape.nodes) + 1)}
    answer = _ask(f"{shape.rm_web}/ws/v1/cluster/nodes")
    if answer is None:
        return None
    nodes = (answer.get("nodes") or {}).get("node") or []
    return tuple(
        NodeStatus(
            id=node["id"],
            host=node["nodeHostName"],
            state=node["state"],
            containers=node["numContainers"],
            used_mib=node["usedMemoryMB"],
            memory_mib=node["usedMemoryMB"] + node["availMemoryMB"],
            used_vcores=node["usedVirtualCores"],
            vcores=node["usedVirtualCores"] + node["availableVirtualCores"],
            heard_ms=node["lastHealthUpdate"],
        )
        for node in nodes
        if node["nodeHostName"] in own or node["state"] != SHUTDOWN
    )


def fetch_missing(shape: ClusterShape, since_ms: Mapping[str, int]) -> dict[str, str]:
    """Which daemons are not ready yet, and what they lack; empty when the cluster is up.

    `since_ms` has the start of daemons just started: what the ResourceManager heard before does not count.
    """
    missing: dict[str, str] = {}
    hdfs = fetch_hdfs(shape)
    if hdfs is None:
        missing["namenode"] = "does not answer"
    elif hdfs.live_datanodes < 1 or not is_datanode_registered(shape):
        missing["datanode"] = "not registered at the NameNode"
    elif hdfs.state != OPERATIONAL:
        missing["namenode"] = "in safe mode"
    nodes = fetch_nodes(shape)
    if nodes is None:
        missing["resourcemanager"] = "does not answer"
    running = {node.host: node for node in nodes or () if node.state == RUNNING}
    for number in range(1, len(shape.nodes) + 1):
        name = node_name(number)
        node = running.get(node_host(number))
        if node is None or node.heard_ms < since_ms.get(name, 0):
            missing[name] = "not registered at the ResourceManager"
    return missing


def make_folders(shape: ClusterShape, user: str) -> None:
    """The folders that users expect: their home, and /tmp open to all. By WebHDFS, which needs no client."""
    for path, permission in ((f"/user/{user}", "755"), ("/tmp", "1777")):
        for operation in ("MKDIRS", "SETPERMISSION"):
            query = urllib.parse.urlencode({"op": operation, "permission": permission, "user.name": user})
            url = f"{shape.namenode_web}/webhdfs/v1{urllib.parse.quote(path)}?{query}"
            try:
                with _opener().open(urllib.request.Request(url, method="PUT"), timeout=30.0):
                    pass
            except OSError as error:
                raise UnreachableError(f"HDFS does not make {path}: {error}") from error


def _ask_bean(web: str, name: str) -> dict[str, Any]:
    answer = _ask(f"{web}/jmx?{urllib.parse.urlencode({'qry': name})}")
    beans = answer.get("beans") if answer else None
    return dict(beans[0]) if beans else {}


def _ask(url: str) -> dict[str, Any] | None:
    try:
        with _opener().open(url, timeout=ASK_TIMEOUT_S) as answer:
            parsed = json.load(answer)
    # HTTPError and URLError are OSErrors; a daemon that is just starting may also answer with a page.
    except (OSError, ValueError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _opener() -> urllib.request.OpenerDirector:
    # Loopback addresses are not for the user's proxy.
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
