"""`tfy cluster`: a real Hadoop on this machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tfy.errors import EXIT_UNREACHABLE
from tfy.yarn.cluster import ClusterStatus, down, fetch_status, up


@click.group()
def cluster() -> None:
    """A real Hadoop on this machine: HDFS and YARN, for trying out and for tests."""


@cluster.command("up")
@click.option("--nodes", type=click.IntRange(min=1), help="How many NodeManagers (2 unless told).")
def up_command(nodes: int | None) -> None:
    """Start the local cluster; what runs already stays.

    Its data outlive `down`. It lives in ~/.local/state/tfy/cluster, or where TFY_CLUSTER_DIR says.
    """
    console = _narrator()
    with _progress(console) as progress:
        result = up(os.environ, nodes=nodes, progress=progress)
    shape = result.shape
    if result.started:
        console.print(f"started {', '.join(result.started)}")
    else:
        console.print("the local cluster was up already")
    console.print(f"{len(shape.nodes)} nodes of {shape.node_memory_mib} MiB and {shape.node_vcores} vcores")
    console.print(f"web pages: ResourceManager {shape.rm_web}, NameNode {shape.namenode_web}")
    click.echo(shape.default_fs)


@cluster.command("down")
def down_command() -> None:
    """Stop the local cluster and its containers; the data stay."""
    console = _narrator()
    with _progress(console) as progress:
        ended = down(os.environ, progress=progress)
    console.print(f"stopped {', '.join(ended)}" if ended else "the local cluster was not up")


@cluster.command("status")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def status_command(context: click.Context, as_json: bool) -> None:
    """Show daemons and nodes. Exit status 3 where the local cluster is not wholly up."""
    status = fetch_status(os.environ)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(status)).decode())
    else:
        _show(status)
    if not status.up:
        context.exit(EXIT_UNREACHABLE)


@cluster.command("env")
def env_command() -> None:
    """Print the line that makes other Hadoop programs use it: eval "$(tfy cluster env)"."""
    status = fetch_status(os.environ)
    if not status.up:
        _narrator().print("the local cluster is not up: tfy cluster up")
    click.echo(f"export HADOOP_CONF_DIR={shlex.quote(status.conf_dir)}")


def _show(status: ClusterStatus) -> None:
    console = Console()
    daemons = Table("daemon", "state", "pid", "address", "web page", box=None)
    for daemon in status.daemons:
        state = "not ready" if daemon.state == "running" and daemon.name in status.missing else daemon.state
        daemons.add_row(daemon.name, state, str(daemon.pid or "-"), daemon.address, daemon.web)
    console.print(daemons, soft_wrap=True)
    if status.nodes:
        nodes = Table("node", "state", "containers", "memory (MiB)", "vcores", box=None)
        for node in status.nodes:
            memory, vcores = f"{node.used_mib}/{node.memory_mib}", f"{node.used_vcores}/{node.vcores}"
            nodes.add_row(node.id, node.state, str(node.containers), memory, vcores)
        console.print()
        console.print(nodes, soft_wrap=True)
    for name, what in status.missing.items():
        console.print(f"{name}: {what}")
    console.print(f"\nHDFS {status.default_fs}, configuration and data in {status.folder}", soft_wrap=True)


def _narrator() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], None]]:
    """A line that changes on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield lambda message: console.print(message)
        return
    with console.status("") as status:
        yield lambda message: status.update(message)
