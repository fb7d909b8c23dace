"""What the local cluster is made of: its ports, its folders, its daemons. All pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MASTER_HOST = "127.0.0.1"
DEFAULT_NODES = 2
# 127.0.0.2 ... 127.0.0.254.
MAX_NODES = 253
NODE_VCORES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterPorts:
    """The ports on 127.0.0.1. Kept for the cluster's life: file system URIs hold `namenode_rpc`."""

    namenode_rpc: int
    namenode_web: int
    datanode_data: int
    datanode_ipc: int
    datanode_web: int
    rm_client: int
    rm_scheduler: int
    rm_tracker: int
    rm_admin: int
    rm_web: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """The ports of one NodeManager, on its own address."""

    rpc: int
    localizer: int
    web: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShape:
    """What the local cluster is made of."""

    masters: MasterPorts
    nodes: tuple[NodePorts, ...]
    node_memory_mib: int
    node_vcores: int = NODE_VCORES

    @property
    def daemon_names(self) -> frozenset[str]:
        """The names of all daemons."""
        nodes = (node_name(number) for number in range(1, len(self.nodes) + 1))
        return frozenset(("namenode", "resourcemanager", "datanode", *nodes))

    @property
    def default_fs(self) -> str:
        """The URI of the cluster's HDFS."""
        return f"hdfs://{MASTER_HOST}:{self.masters.namenode_rpc}"

    @property
    def namenode_web(self) -> str:
        """The NameNode's web address."""
        return f"http://{MASTER_HOST}:{self.masters.namenode_web}"

    @property
    def rm_web(self) -> str:
        """The ResourceManager's web address."""
        return f"http://{MASTER_HOST}:{self.masters.rm_web}"


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """The files below the cluster's folder `root`."""

    root: Path

    @property
    def state(self) -> Path:
        """The shape, and the processes that `up` started."""
        return self.root / "state.json"

    @property
    def lock(self) -> Path:
        """Held by `up` and `down`."""
        return self.root / "lock"

    @property
    def conf(self) -> Path:
        """The HADOOP_CONF_DIR of clients, masters and containers."""
        return self.root / "conf"

    @property
    def log4j(self) -> Path:
        """How daemons log; outside `conf`, since clients log as they like."""
        return self.root / "log4j2.properties"

    @property
    def logs(self) -> Path:
        """The daemons' own logs."""
        return self.root / "logs"

    @property
    def name_dir(self) -> Path:
        """The NameNode's data."""
        return self.root / "data" / "namenode"

    @property
    def data_dir(self) -> Path:
        """The DataNode's data."""
        return self.root / "data" / "datanode"

    @property
    def tmp(self) -> Path:
        """hadoop.tmp.dir."""
        return self.root / "tmp"

    @property
    def nodes(self) -> Path:
        """What the NodeManagers own, containers' working folders among it."""
        return self.root / "nodes"

    def node(self, number: int) -> Path:
        """What one NodeManager owns."""
        return self.nodes / str(number)

    def log(self, daemon: str) -> Path:
        """A daemon's log."""
        return self.logs / f"{daemon}.log"

    def out(self, daemon: str) -> Path:
        """What a daemon wrote to stdout and stderr, since its last start."""
        return self.logs / f"{daemon}.out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """One process of the cluster. `ports` are labelled, the first is the one to talk to."""

    name: str
    title: str
    main_class: str
    host: str
    ports: tuple[tuple[str, int], ...]
    web_port: int
    heap_mib: int
    class_path_head: tuple[Path, ...]
    after: str | None = None
    """The daemon that must accept connections before this one is started: they retry slowly."""
    node: int | None = None
    """Which NodeManager, from 1."""

    @property
    def address(self) -> str:
        """Host and port of the first port."""
        return f"{self.host}:{self.ports[0][1]}"

    @property
    def web(self) -> str:
        """The web page."""
        return f"http://{self.host}:{self.web_port}"


def node_name(number: int) -> str:
    """What the NodeManager `number` (from 1) is called."""
    return f"nodemanager-{number}"


def node_host(number: int) -> str:
    """The loopback address of the NodeManager `number` (from 1)."""
    return f"127.0.0.{number + 1}"


def node_memory_mib(ram_mib: int, nodes: int) -> int:
    """The memory that each NodeManager offers: nominal, so that a small machine can run the examples."""
    share = max(6144, ram_mib * 3 // 4 // nodes)
    return min(8192, share // 1024 * 1024)


def daemons_of(shape: ClusterShape, layout: ClusterLayout) -> tuple[Daemon, ...]:
    """The daemons, in the order in which they are started."""
    ports = shape.masters
    namenode = Daemon(
        name="namenode",
        title="NameNode",
        main_class="org.apache.hadoop.hdfs.server.namenode.NameNode",
        host=MASTER_HOST,
        ports=(("RPC", ports.namenode_rpc), ("web", ports.namenode_web)),
        web_port=ports.namenode_web,
        heap_mib=512,
        class_path_head=(layout.conf,),
    )
    resourcemanager = Daemon(
        name="resourcemanager",
        title="ResourceManager",
        main_class="org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
        host=MASTER_HOST,
        # The first one is what NodeManagers talk to.
        ports=(
            ("resource tracker", ports.rm_tracker),
            ("client RPC", ports.rm_client),
            ("scheduler", ports.rm_scheduler),
            ("admin", ports.rm_admin),
            ("web", ports.rm_web),
        ),
        web_port=ports.rm_web,
        heap_mib=512,
        class_path_head=(layout.conf,),
    )
    datanode = Daemon(
        name="datanode",
        title="DataNode",
        main_class="org.apache.hadoop.hdfs.server.datanode.DataNode",
        host=MASTER_HOST,
        ports=(("data", ports.datanode_data), ("IPC", ports.datanode_ipc), ("web", ports.datanode_web)),
        web_port=ports.datanode_web,
        heap_mib=256,
        class_path_head=(layout.conf,),
        after="namenode",
    )
    nodes = (_nodemanager(number, node, layout) for number, node in enumerate(shape.nodes, 1))
    return (namenode, resourcemanager, datanode, *nodes)


def _nodemanager(number: int, ports: NodePorts, layout: ClusterLayout) -> Daemon:
    return Daemon(
        name=node_name(number),
        title=f"NodeManager {number}",
        main_class="org.apache.hadoop.yarn.server.nodemanager.NodeManager",
        host=node_host(number),
        ports=(("RPC", ports.rpc), ("localizer", ports.localizer), ("web", ports.web)),
        web_port=ports.web,
        heap_mib=256,
        # Its own yarn-site.xml comes before the common one.
        class_path_head=(layout.node(number) / "conf", layout.conf),
        after="resourcemanager",
        node=number,
    )
