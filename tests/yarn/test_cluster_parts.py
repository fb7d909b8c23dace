"""The parts of the local cluster that need no daemon: shape, files, ports, processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tfy.errors import SpecError, UnreachableError
from tfy.storage.hadoop_conf import read_properties
from tfy.yarn.cluster import planned_state
from tfy.yarn.cluster_conf import conf_files
from tfy.yarn.cluster_shape import ClusterLayout, ClusterShape, daemons_of, node_memory_mib
from tfy.yarn.cluster_state import ClusterState, layout_of, load_state, save_state
from tfy.yarn.daemons import last_fault
from tfy.yarn.lock import file_lock
from tfy.yarn.ports import choose_ports, is_free, port_owner
from tfy.yarn.processes import ProcessId, containers_below, identify, is_alive, kill_containers, stop

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def shape() -> ClusterShape:
    return planned_state(None, 2, 16_000).shape


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEP)
    yield process
    process.kill()
    process.wait()


def test_folder_follows_the_environment() -> None:
    assert layout_of({"TFY_CLUSTER_DIR": "/a/b", "HOME": "/h"}).root == Path("/a/b")
    assert layout_of({"XDG_STATE_HOME": "/s", "HOME": "/h"}).root == Path("/s/tfy/cluster")
    assert layout_of({"HOME": "/h"}).root == Path("/h/.local/state/tfy/cluster")
    with pytest.raises(SpecError, match="holds a blank"):
        layout_of({"TFY_CLUSTER_DIR": "/a b"})


@pytest.mark.parametrize(
    ("ram_mib", "nodes", "memory_mib"),
    [(4_000, 2, 6144), (16_000, 2, 6144), (20_000, 2, 7168), (64_000, 2, 8192), (64_000, 7, 6144)],
)
def test_node_memory_is_whole_gib_between_6_and_8(ram_mib: int, nodes: int, memory_mib: int) -> None:
    assert node_memory_mib(ram_mib, nodes) == memory_mib


def test_each_node_has_an_address_ports_and_folders_of_its_own(shape: ClusterShape, tmp_path: Path) -> None:
    layout = ClusterLayout(tmp_path)
    for path, text in conf_files(shape, layout, "me", [Path("/jars/*"), Path("/cache/c.jar")]).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    first, second = (read_properties(layout.node(number) / "conf") for number in (1, 2))
    differing = {name for name in first if first[name] != second[name]}
    assert differing == {
        "yarn.nodemanager.hostname",
        "yarn.nodemanager.bind-host",
        "yarn.nodemanager.address",
        "yarn.nodemanager.localizer.address",
        "yarn.nodemanager.webapp.address",
        "yarn.nodemanager.local-dirs",
        "yarn.nodemanager.log-dirs",
    }
    assert (first["yarn.nodemanager.hostname"], second["yarn.nodemanager.hostname"]) == (
        "127.0.0.2",
        "127.0.0.3",
    )
    common = read_properties(layout.conf)
    assert common["fs.defaultFS"] == shape.default_fs
    assert common["yarn.application.classpath"] == f"{layout.conf},/jars/*,/cache/c.jar"
    assert not any(name.startswith("yarn.nodemanager.address") for name in common)


def test_timeouts_of_yarn_stay_at_their_defaults(shape: ClusterShape, tmp_path: Path) -> None:
    for text in conf_files(shape, ClusterLayout(tmp_path), "me", []).values():
        for word in ("expiry", "sigkill", "process-kill", "liveness", "max-attempts"):
            assert word not in text


def test_no_two_daemons_share_a_port(shape: ClusterShape, tmp_path: Path) -> None:
    taken = [(d.host, port) for d in daemons_of(shape, ClusterLayout(tmp_path)) for _, port in d.ports]
    assert len(taken) == 16
    assert len(set(taken)) == len(taken)


def test_ports_are_kept_when_the_number_of_nodes_changes(shape: ClusterShape) -> None:
    old = ClusterState(shape=shape, processes={})
    grown = planned_state(old, 3, 16_000).shape
    assert grown.masters == shape.masters
    assert grown.nodes[:2] == shape.nodes
    assert len(grown.nodes) == 3
    assert planned_state(old, None, 16_000).shape == shape
    with pytest.raises(SpecError, match="1 to 253"):
        planned_state(old, 254, 16_000)


def test_state_is_read_back(shape: ClusterShape, tmp_path: Path) -> None:
    layout = ClusterLayout(tmp_path)
    assert load_state(layout) is None
    state = ClusterState(shape=shape, processes={"namenode": ProcessId(1, 2, "boot")})
    save_state(layout, state)
    assert load_state(layout) == state
    layout.state.write_text("{}")
    with pytest.raises(UnreachableError, match=r"state\.json cannot be read"):
        load_state(layout)


def test_taken_port_is_not_chosen_and_its_owner_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free("127.0.0.1", port)
        assert f"process {os.getpid()} (" in (port_owner(port) or "")
    assert is_free("127.0.0.1", port)
    assert port_owner(port) is None
    ports = choose_ports(["127.0.0.1"] * 5 + ["127.0.0.2"] * 5, Random(1))
    assert len(set(ports)) == 10


def test_lock_has_a_limit_and_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        file_lock(path, timeout_s=1, what="one"),
        pytest.raises(UnreachableError, match=f"two waited 0 s for process {os.getpid()}"),
        file_lock(path, timeout_s=0.1, what="two"),
    ):
        pass
    with file_lock(path, timeout_s=0.1, what="three"):
        pass


def test_another_process_of_the_same_id_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    process = identify(sleeper.pid)
    assert process is not None
    former = ProcessId(process.pid, process.start_ticks - 1, process.boot_id)
    assert stop([former], term_timeout_s=1) == []
    assert is_alive(process)
    assert stop([process], term_timeout_s=10) == []
    assert sleeper.wait() == -15


def test_zombie_counts_as_ended(sleeper: subprocess.Popen[bytes]) -> None:
    process = identify(sleeper.pid)
    assert process is not None
    os.kill(sleeper.pid, 9)
    # Nobody has waited for it yet: it is a zombie, and `stop` sees the end all the same.
    assert stop([process], term_timeout_s=10) == []
    assert identify(sleeper.pid) is None


def test_only_containers_of_the_folder_are_killed(tmp_path: Path) -> None:
    mine, others = tmp_path / "nodes", tmp_path / "nodes-of-others"
    environments = [
        {"CONTAINER_ID": "container_1", "LOCAL_DIRS": f"{mine}/1/local"},
        {"CONTAINER_ID": "container_2", "LOCAL_DIRS": f"{others}/1/local"},
        {"LOCAL_DIRS": f"{mine}/1/local"},
    ]
    processes = [subprocess.Popen(SLEEP, env=environment) for environment in environments]
    try:
        assert [process.pid for process in containers_below(mine)] == [processes[0].pid]
        assert kill_containers(mine) == []
        assert [process.poll() for process in processes] == [-9, None, None]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_reason_is_the_last_error_since_the_last_start(shape: ClusterShape, tmp_path: Path) -> None:
    layout = ClusterLayout(tmp_path)
    namenode = daemons_of(shape, layout)[0]
    layout.logs.mkdir()
    assert last_fault(namenode, layout) is None
    lines = ["STARTUP_MSG: Starting NameNode", "ERROR old", "STARTUP_MSG: Starting NameNode", "INFO well"]
    layout.log("namenode").write_text("\n".join(lines))
    assert last_fault(namenode, layout) is None
    lines += ["ERROR NameNode: java.net.BindException: Port in use", "\tat org.apache", "INFO SHUTDOWN_MSG"]
    layout.log("namenode").write_text("\n".join(lines))
    assert last_fault(namenode, layout) == "ERROR NameNode: java.net.BindException: Port in use"
