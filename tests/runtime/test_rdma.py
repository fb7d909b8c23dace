"""RDMA without a device: trees written after sysfs, logs after posts of others (tests/data/README.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tfy.errors import StartError
from tfy.runtime.rdma import (
    INFINIBAND,
    ROCE,
    NcclTransport,
    Port,
    choose_link,
    explain_missing,
    find_gid_index,
    find_ports,
    list_links,
    make_rdma_env,
    parse_nccl_log,
)

DATA = Path(__file__).parent.parent / "data"
TELLING = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
BOTH = {"worker:0": (ROCE,), "worker:1": (ROCE,)}


def ports_of(tree: str) -> tuple[Port, ...]:
    return find_ports(DATA / tree)


def test_active_infiniband_ports_are_found() -> None:
    ports = ports_of("sysfs_active")
    assert [(port.name, port.link, port.usable) for port in ports] == [
        ("mlx5_0:1", INFINIBAND, True),
        ("mlx5_1:1", INFINIBAND, False),
        ("mlx5_10:1", INFINIBAND, True),
    ]
    assert list_links(ports) == (INFINIBAND,)


def test_a_port_that_is_down_and_an_iwarp_device_are_no_use() -> None:
    ports = ports_of("sysfs_down")
    assert [port.link for port in ports] == [INFINIBAND, ROCE, None]
    assert list_links(ports) == ()


def test_roce_ports_have_their_routed_gids() -> None:
    ports = ports_of("sysfs_roce")
    assert [port.gids for port in ports] == [(3,), (3,)]
    assert list_links(ports) == (ROCE,)


def test_a_host_without_a_device_has_no_ports(tmp_path: Path) -> None:
    assert find_ports(tmp_path / "infiniband") == ()
    assert find_ports(tmp_path) == ()


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            "sysfs_down",
            "mlx5_0:1 is DOWN, mlx5_1:1 is DOWN, siw0:1 is ACTIVE and neither InfiniBand nor RoCE",
        ),
        ("sysfs_none", "it has no RDMA device at all"),
    ],
)
def test_a_task_that_requires_rdma_says_what_its_host_has(tree: str, said: str) -> None:
    assert explain_missing("required", 1, ports_of(tree)) == (
        f"rdma: required, but this host has no RDMA port that NCCL can use: {said}"
    )


@pytest.mark.parametrize(
    ("mode", "gpus", "tree"),
    [("preferred", 1, "sysfs_none"), ("off", 1, "sysfs_none"), ("required", 0, "sysfs_none")]
    + [("required", 1, tree) for tree in ("sysfs_active", "sysfs_roce")],
)
def test_other_tasks_start(mode: str, gpus: int, tree: str) -> None:
    assert explain_missing(mode, gpus, ports_of(tree)) is None


@pytest.mark.parametrize(
    ("links", "chosen"),
    [
        ({}, None),
        ({"worker:0": (ROCE,), "worker:1": ()}, None),
        ({"worker:0": (ROCE,), "worker:1": (INFINIBAND,)}, None),
        ({"worker:0": (INFINIBAND, ROCE), "worker:1": (ROCE,)}, ROCE),
        ({"worker:0": (INFINIBAND, ROCE), "worker:1": (INFINIBAND, ROCE)}, INFINIBAND),
    ],
)
def test_all_hosts_use_one_link(links: dict[str, tuple[str, ...]], chosen: str | None) -> None:
    assert choose_link(links) == chosen


def test_infiniband_is_asked_for_by_its_active_ports_alone() -> None:
    links = {"worker:0": (INFINIBAND,), "worker:1": (INFINIBAND,)}
    env, sentence = make_rdma_env("preferred", 1, ports_of("sysfs_active"), links)
    # `=`: a name without it means all devices that begin so, mlx5_1 also mlx5_10.
    assert env == {"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_10:1", **TELLING}
    assert sentence == "NCCL: asked for RDMA over InfiniBand by mlx5_0:1, mlx5_10:1 (rdma: preferred)"


def test_what_is_required_has_no_way_back_to_tcp() -> None:
    env, sentence = make_rdma_env("required", 1, ports_of("sysfs_roce"), BOTH)
    assert env == {
        "NCCL_IB_DISABLE": "0",
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
        "NCCL_IB_GID_INDEX": "3",
        "NCCL_NET": "IB",
        **TELLING,
    }
    assert sentence == "NCCL: asked for RDMA over RoCE by mlx5_0:1, mlx5_1:1 (rdma: required)"


def test_one_host_without_a_device_takes_all_to_tcp() -> None:
    links = {"worker:0": (ROCE,), "worker:1": ()}
    with_device, said_there = make_rdma_env("preferred", 1, ports_of("sysfs_roce"), links)
    without, said_here = make_rdma_env("preferred", 1, (), links)
    assert with_device == without == {"NCCL_IB_DISABLE": "1", **TELLING}
    assert said_there == said_here
    assert (
        said_here == "NCCL: asked for TCP: the hosts of worker:1 have no active RDMA port (rdma: preferred)"
    )


def test_hosts_with_different_links_go_by_tcp() -> None:
    links = {"worker:0": (ROCE,), "worker:1": (INFINIBAND,)}
    env, sentence = make_rdma_env("preferred", 1, ports_of("sysfs_roce"), links)
    assert env["NCCL_IB_DISABLE"] == "1"
    assert sentence == "NCCL: asked for TCP: hosts differ in their links (rdma: preferred)"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ((INFINIBAND,), "worker:0 has RoCE, worker:1 has InfiniBand"),
        ((), "worker:0 has RoCE, worker:1 has none"),
    ],
)
def test_required_fails_where_hosts_have_no_link_in_common(other: tuple[str, ...], said: str) -> None:
    links = {"worker:0": (ROCE,), "worker:1": other}
    with pytest.raises(StartError) as raised:
        make_rdma_env("required", 1, ports_of("sysfs_roce"), links)
    assert raised.value.message == f"rdma: required, but the tasks' hosts have no RDMA link in common: {said}"


def test_off_is_off_and_a_task_without_gpus_is_left_alone() -> None:
    assert make_rdma_env("off", 1, ports_of("sysfs_roce"), BOTH) == (
        {"NCCL_IB_DISABLE": "1"},
        "NCCL: asked for TCP (rdma: off)",
    )
    assert make_rdma_env("required", 0, ports_of("sysfs_roce"), BOTH) == ({}, "")


def test_a_gid_index_is_set_only_where_it_is_certain() -> None:
    first, second = ports_of("sysfs_roce")
    assert find_gid_index((first, second)) == 3
    assert find_gid_index((first, replace(second, gids=(5,)))) is None
    assert find_gid_index((replace(first, gids=(3, 5)),)) is None
    assert find_gid_index((replace(first, gids=()),)) is None
    assert find_gid_index((replace(first, link=INFINIBAND),)) is None
    assert find_gid_index(()) is None


@pytest.mark.parametrize(
    ("log", "transport", "sentence"),
    [
        (
            "roce.log",
            NcclTransport("IB", ("mlx5_10:1/RoCE", "mlx5_11:1/RoCE")),
            "NCCL uses RDMA (IB) by mlx5_10:1/RoCE, mlx5_11:1/RoCE",
        ),
        (
            "infiniband.log",
            NcclTransport("IB", ("mlx5_3:1/IB", "mlx5_2:1/IB", "mlx5_1:1/IB", "mlx5_0:1/IB")),
            "NCCL uses RDMA (IB) by mlx5_3:1/IB, mlx5_2:1/IB, mlx5_1:1/IB, mlx5_0:1/IB",
        ),
        (
            "socket.log",
            NcclTransport("Socket", ("eth0:10.0.0.1<0>",)),
            "NCCL uses TCP (Socket) by eth0:10.0.0.1<0>",
        ),
        (
            "no_device.log",
            NcclTransport("Socket", ("ens3:10.0.0.1<0>",)),
            "NCCL uses TCP (Socket) by ens3:10.0.0.1<0>",
        ),
    ],
)
def test_nccl_is_taken_at_its_word(log: str, transport: NcclTransport, sentence: str) -> None:
    found = parse_nccl_log((DATA / "nccl_logs" / log).read_text())
    assert found == transport
    assert found.sentence == sentence


def test_a_plugin_is_called_one_and_other_logs_say_nothing() -> None:
    found = parse_nccl_log("h:1:1 [0] NCCL INFO Using network Libfabric\n")
    assert found == NcclTransport("Libfabric", ())
    assert found.sentence == "NCCL uses a plugin of its own (Libfabric)"
    assert parse_nccl_log("step 1, loss 0.3\nNCCL INFO NET/IB : No device found.\n") is None
