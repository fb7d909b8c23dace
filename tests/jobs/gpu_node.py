"""One NodeManager more, with GPUs that do not exist: it joins the tests' cluster and leaves it again."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

from tests.conftest import LocalHadoop
from tests.gpu_host import write_smi
from tests.jobs.running import ask_yarn
from tests.waiting import wait_until
from tfy.yarn.cluster_conf import GPU_RESOURCE, LOG4J, node_site, site_xml
from tfy.yarn.cluster_health import fetch_nodes
from tfy.yarn.cluster_shape import ClusterLayout, Daemon, NodePorts, node_host
from tfy.yarn.daemons import Launcher
from tfy.yarn.jars import DAEMON_JARS, fetch_jars, pyspark_jars
from tfy.yarn.java import read_java
from tfy.yarn.ports import choose_ports
from tfy.yarn.processes import kill_containers

# Far from the cluster's own nodes: 127.0.0.9.
NUMBER = 8
HOST = node_host(NUMBER)
MEMORY_MIB = 6144
JOIN_LIMIT_S = 90.0
LEAVE_LIMIT_S = 60.0


@contextmanager
def gpu_node(cluster: LocalHadoop, folder: Path, uuids: tuple[str, ...]) -> Iterator[None]:
    """A real NodeManager with Hadoop's GPU plugin, whose nvidia-smi shows `uuids`, for the block's length.

    It leaves as an operator would stop it: it unregisters, and gets no container from then on.
    """
    layout = ClusterLayout(folder)
    _write_conf(cluster, layout, write_smi(folder / "nvidia", uuids))
    java = read_java(cluster.environ)
    jars = fetch_jars(java.binary, cluster.environ, DAEMON_JARS)
    launcher = Launcher(java, (*jars, *pyspark_jars()), layout, cluster.environ)
    process = launcher.start(_daemon(layout))
    try:
        _wait_for_state(cluster, "RUNNING", process, JOIN_LIMIT_S, layout)
        yield
    finally:
        process.terminate()
        try:
            process.wait(LEAVE_LIMIT_S)
        finally:
            process.kill()
            process.wait(LEAVE_LIMIT_S)
            kill_containers(layout.nodes)
    _wait_for_state(cluster, "SHUTDOWN", None, LEAVE_LIMIT_S, layout)
    left = fetch_nodes(cluster.shape)
    assert left is not None
    assert HOST not in {node.host for node in left}


def find_node(cluster: LocalHadoop) -> dict[str, Any] | None:
    """The ResourceManager's record of the node: the running one, or else one that has left."""
    nodes = (ask_yarn(cluster, "/ws/v1/cluster/nodes").get("nodes") or {}).get("node") or []
    mine = [node for node in nodes if node["nodeHostName"] == HOST]
    return max(mine, key=lambda node: bool(node["state"] == "RUNNING"), default=None)


def count_gpus(resource: dict[str, Any]) -> int:
    """The GPUs in a resource, as the ResourceManager's REST interface writes them."""
    entries = resource["resourceInformations"]["resourceInformation"]
    return next((int(entry["value"]) for entry in entries if entry["name"] == GPU_RESOURCE), 0)


def _write_conf(cluster: LocalHadoop, layout: ClusterLayout, smi: Path) -> None:
    layout.conf.mkdir(parents=True)
    for path in cluster.conf_dir.glob("*.xml"):
        shutil.copy(path, layout.conf)
    layout.log4j.write_text(LOG4J)
    ports = NodePorts(
        **dict(zip(("rpc", "localizer", "web"), choose_ports([HOST] * 3, Random()), strict=True))
    )
    settings = {
        **_read_site(layout.conf / "yarn-site.xml"),
        **node_site(NUMBER, ports, layout),
        "yarn.nodemanager.resource.memory-mb": str(MEMORY_MIB),
        "yarn.nodemanager.resource-plugins": GPU_RESOURCE,
        "yarn.nodemanager.resource-plugins.gpu.path-to-discovery-executables": str(smi),
    }
    (layout.conf / "yarn-site.xml").write_text(site_xml(settings))


def _read_site(path: Path) -> dict[str, str]:
    return {
        entry.findtext("name") or "": entry.findtext("value") or ""
        for entry in ElementTree.parse(path).getroot().iter("property")
    }


def _daemon(layout: ClusterLayout) -> Daemon:
    return Daemon(
        name=f"nodemanager-{NUMBER}",
        title="the tests' NodeManager with GPUs",
        main_class="org.apache.hadoop.yarn.server.nodemanager.NodeManager",
        host=HOST,
        ports=(),
        web_port=0,
        heap_mib=256,
        class_path_head=(layout.conf,),
    )


def _wait_for_state(
    cluster: LocalHadoop,
    state: str,
    process: subprocess.Popen[bytes] | None,
    limit_s: float,
    layout: ClusterLayout,
) -> None:
    def reached() -> bool:
        log = layout.log(f"nodemanager-{NUMBER}")
        assert process is None or process.poll() is None, log.read_text()[-4000:]
        node = find_node(cluster)
        return node is not None and node["state"] == state

    wait_until(reached, limit_s=limit_s, what=f"{HOST} {state}")
