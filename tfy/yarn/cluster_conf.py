"""The local cluster's configuration files. All pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tfy.yarn.cluster_shape import MASTER_HOST, ClusterLayout, ClusterShape, NodePorts, node_host


def conf_files(
    shape: ClusterShape, layout: ClusterLayout, user: str, classpath: Sequence[Path]
) -> dict[Path, str]:
    """The text of each configuration file; `classpath` is what containers get besides the configuration."""
    yarn = yarn_site(shape, layout, classpath)
    files = {
        layout.conf / "core-site.xml": site_xml(core_site(shape, layout, user)),
        layout.conf / "hdfs-site.xml": site_xml(hdfs_site(shape, layout)),
        layout.conf / "yarn-site.xml": site_xml(yarn),
        layout.conf / "capacity-scheduler.xml": site_xml(CAPACITY_SCHEDULER),
        layout.conf / "resource-types.xml": site_xml(RESOURCE_TYPES),
        layout.log4j: LOG4J,
    }
    for number, ports in enumerate(shape.nodes, 1):
        own = {**yarn, **node_site(number, ports, layout)}
        files[layout.node(number) / "conf" / "yarn-site.xml"] = site_xml(own)
    return files


def site_xml(properties: Mapping[str, str]) -> str:
    """A Hadoop configuration file."""
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    return "\n".join(['<?xml version="1.0"?>', "<configuration>", *lines, "</configuration>", ""])


def core_site(shape: ClusterShape, layout: ClusterLayout, user: str) -> dict[str, str]:
    """core-site.xml."""
    return {
        "fs.defaultFS": shape.default_fs,
        "hadoop.tmp.dir": str(layout.tmp),
        # Web pages act as the user; Hadoop's default `dr.who` may look into nothing.
        "hadoop.http.staticuser.user": user,
    }


def hdfs_site(shape: ClusterShape, layout: ClusterLayout) -> dict[str, str]:
    """hdfs-site.xml."""
    ports = shape.masters
    return {
        "dfs.replication": "1",
        "dfs.namenode.name.dir": layout.name_dir.as_uri(),
        "dfs.datanode.data.dir": layout.data_dir.as_uri(),
        "dfs.namenode.rpc-address": f"{MASTER_HOST}:{ports.namenode_rpc}",
        "dfs.namenode.http-address": f"{MASTER_HOST}:{ports.namenode_web}",
        "dfs.datanode.hostname": MASTER_HOST,
        "dfs.datanode.address": f"{MASTER_HOST}:{ports.datanode_data}",
        "dfs.datanode.ipc.address": f"{MASTER_HOST}:{ports.datanode_ipc}",
        "dfs.datanode.http.address": f"{MASTER_HOST}:{ports.datanode_web}",
        # Loopback addresses need no name.
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        # Out of safe mode when the DataNode has told its blocks, and not 30 s after.
        "dfs.namenode.safemode.min.datanodes": "1",
        "dfs.namenode.safemode.extension": "0",
        "dfs.heartbeat.interval": "1",
        "dfs.permissions.enabled": "true",
    }


def yarn_site(shape: ClusterShape, layout: ClusterLayout, classpath: Sequence[Path]) -> dict[str, str]:
    """yarn-site.xml. YARN's timeouts stay as they are everywhere."""
    ports = shape.masters
    scheduler = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
    return {
        "yarn.resourcemanager.hostname": MASTER_HOST,
        "yarn.resourcemanager.address": f"{MASTER_HOST}:{ports.rm_client}",
        "yarn.resourcemanager.scheduler.address": f"{MASTER_HOST}:{ports.rm_scheduler}",
        "yarn.resourcemanager.resource-tracker.address": f"{MASTER_HOST}:{ports.rm_tracker}",
        "yarn.resourcemanager.admin.address": f"{MASTER_HOST}:{ports.rm_admin}",
        "yarn.resourcemanager.webapp.address": f"{MASTER_HOST}:{ports.rm_web}",
        "yarn.resourcemanager.scheduler.class": scheduler,
        # Each heartbeat places one container (see the scheduler's file): oftener than each second, then.
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "250",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.maximum-allocation-mb": str(shape.node_memory_mib),
        "yarn.scheduler.maximum-allocation-vcores": str(shape.node_vcores),
        "yarn.nodemanager.resource.memory-mb": str(shape.node_memory_mib),
        "yarn.nodemanager.resource.cpu-vcores": str(shape.node_vcores),
        # TensorFlow reserves far more address space than it uses.
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "true",
        # Where it is true, as by default, the check is left to cgroups, which are not set up here.
        "yarn.nodemanager.resource.memory.enforced": "false",
        # It calls a disk bad that is 90 % full, as a laptop's often is, and then the node takes no container.
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.log-aggregation-enable": "true",
        "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,LC_ALL,TZ",
        "yarn.application.classpath": ",".join(map(str, (layout.conf, *classpath))),
    }


def node_site(number: int, ports: NodePorts, layout: ClusterLayout) -> dict[str, str]:
    """What one NodeManager has besides the common yarn-site.xml."""
    host = node_host(number)
    return {
        "yarn.nodemanager.hostname": host,
        # With a bind-host the node is called by the address below, not by what the resolver makes of it
        # (some call all of 127/8 `localhost`).
        "yarn.nodemanager.bind-host": host,
        "yarn.nodemanager.address": f"{host}:{ports.rpc}",
        "yarn.nodemanager.localizer.address": f"{host}:{ports.localizer}",
        "yarn.nodemanager.webapp.address": f"{host}:{ports.web}",
        "yarn.nodemanager.local-dirs": str(layout.node(number) / "local"),
        "yarn.nodemanager.log-dirs": str(layout.node(number) / "logs"),
    }


GPU_RESOURCE = "yarn.io/gpu"
RESOURCE_CALCULATOR = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
CAPACITY_SCHEDULER = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # A job is two applications, each with an ApplicationMaster.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
    "yarn.scheduler.capacity.resource-calculator": RESOURCE_CALCULATOR,
    # One container a heartbeat, so that they spread over the nodes.
    "yarn.scheduler.capacity.per-node-heartbeat.multiple-assignments-enabled": "false",
}

# No NodeManager of this cluster offers one. Masters and clients must know the name all the same: a node
# that does may join, and a client without this file could not read such a node's report.
RESOURCE_TYPES = {"yarn.resource-types": GPU_RESOURCE}

LOG4J = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${sys:tfy.daemon.log}
appender.file.filePattern = ${sys:tfy.daemon.log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %-5p %c{1}: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 16MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""
