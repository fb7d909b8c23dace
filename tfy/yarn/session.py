"""One command's hold on a cluster: its configuration, its storage, its YARN."""

from __future__ import annotations

import getpass
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from tfy.errors import UnreachableError
from tfy.storage.hdfs import Storage
from tfy.yarn import client
from tfy.yarn.client import JavaSettings, Yarn
from tfy.yarn.credentials import Credentials, make_credentials
from tfy.yarn.follow import Jobs
from tfy.yarn.hadoop import Hadoop, find_hadoop
from tfy.yarn.java import java_bin

# A command that only looks needs its credentials for its own Java process, not for long.
_LOOK_LIMIT_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster that a command speaks to, before anything is started."""

    hadoop: Hadoop
    storage: Storage
    user: str


def find_cluster(environ: Mapping[str, str]) -> Cluster:
    """The cluster to use. Raises `UnreachableError` with what was looked for."""
    hadoop = find_hadoop(environ)
    default_fs = hadoop.default_fs.rstrip("/")
    if not default_fs.startswith(("hdfs://", "viewfs://")):
        raise UnreachableError(
            f"{hadoop.conf_dir}: fs.defaultFS is {default_fs or 'not set'}, not an hdfs:// address",
            hint="HADOOP_CONF_DIR must hold the core-site.xml of a cluster with HDFS",
        )
    return Cluster(
        hadoop=hadoop,
        storage=Storage(default_fs, hadoop.properties),
        user=environ.get("HADOOP_USER_NAME") or getpass.getuser(),
    )


@contextmanager
def open_yarn(
    cluster: Cluster, environ: Mapping[str, str], credentials: Credentials | None = None
) -> Iterator[Yarn]:
    """YARN of the cluster, for as long as the block lasts."""
    if credentials is None:
        credentials = make_credentials(datetime.now(timezone.utc), _LOOK_LIMIT_S)
    with tempfile.TemporaryDirectory(prefix="tfy-") as scratch:
        settings = JavaSettings(
            java=str(java_bin(environ)),
            classpath=cluster.hadoop.classpath,
            conf_dir=cluster.hadoop.conf_dir,
            environ=environ,
            log=Path(scratch) / "skein.log",
        )
        with client.connect(settings, credentials) as yarn:
            yield yarn


@contextmanager
def open_jobs(environ: Mapping[str, str]) -> Iterator[Jobs]:
    """The jobs of the cluster, for commands that look or kill."""
    cluster = find_cluster(environ)
    with open_yarn(cluster, environ) as yarn:
        yield Jobs(yarn, cluster.storage, cluster.user)
