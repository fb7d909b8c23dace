"""The real local Hadoop for tests: one for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tfy.yarn.cluster import down, up
from tfy.yarn.cluster_shape import ClusterLayout, ClusterShape
from tfy.yarn.cluster_state import ENV_CLUSTER_DIR, layout_of, load_state
from tfy.yarn.hadoop import ENV_CONF_DIR


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHadoop:
    """A local cluster that is up. `own` says whether the tests started it."""

    shape: ClusterShape
    layout: ClusterLayout
    environ: dict[str, str]
    """For subprocesses: it finds this cluster as a user's command does."""
    own: bool

    @property
    def conf_dir(self) -> Path:
        """What HADOOP_CONF_DIR would be."""
        return self.layout.conf

    @property
    def uri(self) -> str:
        """The file system, as `hdfs://127.0.0.1:port`."""
        return self.shape.default_fs

    @property
    def rm_web(self) -> str:
        """The ResourceManager's web address."""
        return self.shape.rm_web

    @property
    def namenode_web(self) -> str:
        """The NameNode's web address."""
        return self.shape.namenode_web


@dataclass(frozen=True, slots=True)
class Hdfs:
    """The cluster's file system."""

    uri: str
    conf_dir: Path


def cluster_environ(folder: Path) -> dict[str, str]:
    """This process's environment, with the cluster of `folder` as the only one to be found."""
    kept = {name: value for name, value in os.environ.items() if name != ENV_CONF_DIR}
    return {**kept, ENV_CLUSTER_DIR: str(folder)}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHadoop]:
    """The user's local cluster where it is up, or else one of the tests' own, stopped at the end."""
    users = layout_of(os.environ)
    state = load_state(users)
    if state and state.alive():
        dead = state.dead(users)
        if dead:
            pytest.fail(
                f"the local cluster is half up ({', '.join(dead)} not running): tfy cluster up, or down"
            )
        yield LocalHadoop(shape=state.shape, layout=users, environ=cluster_environ(users.root), own=False)
        return
    environ = cluster_environ(tmp_path_factory.mktemp("cluster"))
    try:
        result = up(environ, nodes=2)
        yield LocalHadoop(shape=result.shape, layout=result.layout, environ=environ, own=True)
    finally:
        down(environ)


@pytest.fixture(scope="session")
def mortal_cluster(cluster: LocalHadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHadoop]:
    """A cluster that tests may take down and break: the tests' own, never the user's."""
    if cluster.own:
        yield cluster
        return
    environ = cluster_environ(tmp_path_factory.mktemp("mortal"))
    try:
        result = up(environ, nodes=2)
        yield LocalHadoop(shape=result.shape, layout=result.layout, environ=environ, own=True)
    finally:
        down(environ)


@pytest.fixture
def hdfs(cluster: LocalHadoop) -> Hdfs:
    """The cluster's file system."""
    return Hdfs(cluster.uri, cluster.conf_dir)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take the cluster down come last."""
    items.sort(key=lambda item: isinstance(item, pytest.Function) and "mortal_cluster" in item.fixturenames)
