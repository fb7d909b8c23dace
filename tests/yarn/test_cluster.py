"""The local cluster itself: real daemons, taken down and broken."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import hdfs_native
import pytest
from click.testing import CliRunner

from tests.conftest import LocalHadoop
from tests.waiting import wait_until
from tfy.cli.cluster import cluster as cluster_command
from tfy.errors import SpecError, UnreachableError
from tfy.yarn.cluster import down, fetch_status, up
from tfy.yarn.cluster_state import load_state
from tfy.yarn.ports import is_free
from tfy.yarn.processes import containers_below

pytestmark = pytest.mark.cluster


@pytest.fixture
def running(mortal_cluster: LocalHadoop) -> LocalHadoop:
    """The cluster, up whatever the test before did to it."""
    up(mortal_cluster.environ)
    return mortal_cluster


def pid_of(cluster: LocalHadoop, daemon: str) -> int:
    state = load_state(cluster.layout)
    assert state is not None
    return state.processes[daemon].pid


def write(cluster: LocalHadoop, path: str, content: bytes) -> None:
    with hdfs_native.Client(cluster.uri).create(path) as file:
        file.write(content)


def read(cluster: LocalHadoop, path: str) -> bytes:
    with hdfs_native.Client(cluster.uri).read(path) as file:
        return bytes(file.read())


def processes_of(cluster: LocalHadoop) -> list[str]:
    """The ids of all processes with the cluster's folder in their command line or environment."""
    wanted = os.fsencode(cluster.layout.root) + b"/"
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if wanted in text:
            found.append(entry.name)
    return found


def ask_rm(cluster: LocalHadoop, path: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{cluster.rm_web}/ws/v1/cluster/{path}", data=data, headers={"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        parsed = json.loads(answer.read() or b"{}")
    assert isinstance(parsed, dict)
    return parsed


def submit_shell(cluster: LocalHadoop, command: str) -> str:
    """An application whose ApplicationMaster is a shell command; its id."""
    application = str(ask_rm(cluster, "apps/new-application", {})["application-id"])
    ask_rm(
        cluster,
        "apps",
        {
            "application-id": application,
            "application-name": "shell",
            "am-container-spec": {"commands": {"command": command}},
            "resource": {"memory": 256, "vCores": 1},
        },
    )
    return application


def test_two_nodes_on_two_addresses(running: LocalHadoop) -> None:
    status = fetch_status(running.environ)
    assert status.up
    assert {(node.host, node.state) for node in status.nodes} == {
        ("127.0.0.2", "RUNNING"),
        ("127.0.0.3", "RUNNING"),
    }
    assert {daemon.state for daemon in status.daemons} == {"running"}


def test_web_pages_are_served(running: LocalHadoop) -> None:
    status = fetch_status(running.environ)
    for page in (status.rm_web, status.namenode_web, *(daemon.web for daemon in status.daemons)):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(page, timeout=10) as answer:
            assert answer.status == 200


def test_up_again_is_quick_and_starts_nothing(running: LocalHadoop) -> None:
    began = time.monotonic()
    assert up(running.environ).started == ()
    assert time.monotonic() - began < 5


def test_another_size_is_refused_while_up(running: LocalHadoop) -> None:
    with pytest.raises(SpecError, match="up with 2 nodes, not 3") as caught:
        up(running.environ, nodes=3)
    assert caught.value.hint == "tfy cluster down && tfy cluster up --nodes 3"


def test_commands_answer_on_stdout(running: LocalHadoop) -> None:
    runner = CliRunner(env=running.environ)
    shown = runner.invoke(cluster_command, ["env"])
    assert shown.stdout == f"export HADOOP_CONF_DIR={running.conf_dir}\n"
    assert runner.invoke(cluster_command, ["up"]).stdout == f"{running.uri}\n"
    as_json = json.loads(runner.invoke(cluster_command, ["status", "--json"]).stdout)
    assert as_json["default_fs"] == running.uri
    assert len(as_json["nodes"]) == 2
    table = runner.invoke(cluster_command, ["status"])
    assert table.exit_code == 0
    assert f"http://127.0.0.1:{running.shape.masters.rm_web}" in table.stdout


def test_users_folders_are_there(running: LocalHadoop) -> None:
    client = hdfs_native.Client(running.uri)
    assert client.get_file_info("/tmp").permission == 0o1777
    homes = [status.path for status in client.list_status("/user")]
    assert len(homes) == 1


def test_data_outlive_down_and_a_killed_namenode(running: LocalHadoop) -> None:
    write(running, "/tmp/kept", b"before down")
    assert len(down(running.environ)) == 5
    up(running.environ)
    assert read(running, "/tmp/kept") == b"before down"
    write(running, "/tmp/kept-too", b"before kill")
    os.kill(pid_of(running, "namenode"), signal.SIGKILL)
    wait_until(lambda: not fetch_status(running.environ).up, limit_s=10, what="namenode seen dead")
    assert up(running.environ).started == ("namenode",)
    assert read(running, "/tmp/kept-too") == b"before kill"
    # Writing needs the DataNode to have found the new NameNode.
    write(running, "/tmp/kept-after", b"after")
    assert read(running, "/tmp/kept-after") == b"after"


def test_killed_datanode_is_back_with_its_blocks(running: LocalHadoop) -> None:
    """`up` waits for the new one, though the NameNode takes the dead one for alive."""
    write(running, "/tmp/block", b"on disk")
    os.kill(pid_of(running, "datanode"), signal.SIGKILL)
    wait_until(lambda: not fetch_status(running.environ).up, limit_s=10, what="datanode seen dead")
    assert up(running.environ).started == ("datanode",)
    assert read(running, "/tmp/block") == b"on disk"


def test_dead_resource_manager_takes_its_nodes_with_it(running: LocalHadoop) -> None:
    os.kill(pid_of(running, "resourcemanager"), signal.SIGKILL)
    wait_until(lambda: not fetch_status(running.environ).up, limit_s=10, what="resourcemanager seen dead")
    status = CliRunner(env=running.environ).invoke(cluster_command, ["status"])
    assert status.exit_code == 3
    assert "dead" in status.stdout
    assert set(up(running.environ).started) == {"resourcemanager", "nodemanager-1", "nodemanager-2"}
    assert fetch_status(running.environ).up


def test_down_leaves_no_process(running: LocalHadoop) -> None:
    """Not even a container's grandchild in a session of its own, which the NodeManager does not know."""
    submit_shell(running, "(setsid sleep 600 &); sleep 600")
    wait_until(lambda: len(containers_below(running.layout.nodes)) >= 3, limit_s=30, what="container runs")
    assert set(down(running.environ)) >= {"namenode", "resourcemanager", "datanode"}
    assert processes_of(running) == []
    assert down(running.environ) == ()
    status = fetch_status(running.environ)
    assert not status.up
    assert {daemon.state for daemon in status.daemons} == {"stopped"}


@pytest.fixture
def stopped(mortal_cluster: LocalHadoop) -> LocalHadoop:
    """The cluster, down."""
    down(mortal_cluster.environ)
    return mortal_cluster


def test_taken_port_is_told(stopped: LocalHadoop) -> None:
    port = stopped.shape.masters.rm_client
    with socket.create_server(("127.0.0.1", port)), pytest.raises(UnreachableError) as caught:
        up(stopped.environ)
    said = caught.value.message
    assert f"ResourceManager cannot start: its client RPC port 127.0.0.1:{port} is taken by" in said
    assert f"process {os.getpid()}" in said
    assert str(stopped.layout.log("resourcemanager")) in said
    assert processes_of(stopped) == []


@pytest.fixture
def foreign_data(stopped: LocalHadoop) -> Iterator[LocalHadoop]:
    """The DataNode's data belong to another file system."""
    version = stopped.layout.data_dir / "current" / "VERSION"
    text = version.read_text()
    version.write_text(re.sub("clusterID=.*", "clusterID=CID-of-another", text))
    yield stopped
    version.write_text(text)


def test_daemon_that_fails_is_named_with_reason_and_log(foreign_data: LocalHadoop) -> None:
    with pytest.raises(UnreachableError) as caught:
        up(foreign_data.environ, timeout_s=60)
    said = caught.value.message
    assert said.startswith("DataNode: ended with exit code")
    assert "Incompatible clusterIDs" in said
    assert str(foreign_data.layout.log("datanode")) in said
    # What this `up` had started is gone again.
    assert processes_of(foreign_data) == []
    assert is_free("127.0.0.1", foreign_data.shape.masters.namenode_rpc)
