"""One command's hold on a cluster: its configuration, its storage, its YARN."""

from __future__ import annotations

import getpass
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tfy.errors import UnreachableError
from tfy.storage.hdfs import Storage
from tfy.yarn.application import Application, Looks, Wanted
from tfy.yarn.follow import Jobs
from tfy.yarn.hadoop import Hadoop, find_classpath, find_hadoop
from tfy.yarn.java import java_bin
from tfy.yarn.reach import require_resource_manager
from tfy.yarn.rest import RestError, RmRest, find_addresses

if TYPE_CHECKING:
    # Skein takes a third of a second to load, which looking by REST does without.
    from tfy.yarn.client import Yarn
    from tfy.yarn.credentials import Credentials

# A command that only looks needs its credentials for its own Java process, not for long.
_LOOK_LIMIT_S = 24 * 3600

T = TypeVar("T")


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
    return Cluster(hadoop=hadoop, storage=Storage(default_fs, hadoop.properties), user=find_user(environ))


def find_user(environ: Mapping[str, str]) -> str:
    """Who one is to the cluster."""
    return environ.get("HADOOP_USER_NAME") or getpass.getuser()


@contextmanager
def open_yarn(
    cluster: Cluster, environ: Mapping[str, str], credentials: Credentials | None = None
) -> Iterator[Yarn]:
    """YARN of the cluster through Skein's Java process, which ends with the block."""
    require_resource_manager(cluster.hadoop.properties)
    from tfy.yarn.client import JavaSettings, connect
    from tfy.yarn.credentials import make_credentials

    if credentials is None:
        credentials = make_credentials(datetime.now(timezone.utc), _LOOK_LIMIT_S)
    with tempfile.TemporaryDirectory(prefix="tfy-") as scratch:
        settings = JavaSettings(
            java=str(java_bin(environ)),
            classpath=find_classpath(cluster.hadoop, environ),
            conf_dir=cluster.hadoop.conf_dir,
            environ=environ,
            log=Path(scratch) / "skein.log",
        )
        with connect(settings, credentials) as yarn:
            yield yarn


class QuickYarn:
    """YARN by REST where it answers; by Skein's Java process where it does not, and for killing."""

    def __init__(self, rest: RmRest | None, start: Callable[[], Yarn]) -> None:
        """`start` starts Skein's Java process, or returns the one that runs already."""
        self._rest = rest
        self._start = start
        self._answered = False

    def report(self, application_id: str) -> Application | None:
        """The application, or None where YARN does not know it (any more)."""
        return self._ask(lambda door: door.report(application_id))

    def list_applications(self, wanted: Wanted) -> tuple[Application, ...]:
        """Jobs' Skein applications, oldest first."""
        return self._ask(lambda door: door.list_applications(wanted))

    def kill(self, application_id: str) -> None:
        """Kills a Skein application. One that has ended already is no error."""
        self._start().kill(application_id)

    def kill_spark(self, application_id: str) -> None:
        """Kills a Spark application. One that has ended already is no error."""
        self._start().kill_spark(application_id)

    def _ask(self, question: Callable[[Looks], T]) -> T:
        if self._rest is not None:
            try:
                answer = question(self._rest)
            except RestError:
                if self._answered:
                    # It has served before: now the ResourceManager itself is away.
                    raise
                self._rest = None
            else:
                self._answered = True
                return answer
        return question(self._start())


@contextmanager
def open_jobs(environ: Mapping[str, str]) -> Iterator[Jobs]:
    """The jobs of the cluster, for whoever looks or kills; what had to be started ends with the block."""
    cluster = find_cluster(environ)
    addresses = find_addresses(cluster.hadoop.properties)
    with ExitStack() as stack:
        start = cache(lambda: stack.enter_context(open_yarn(cluster, environ)))
        rest = RmRest(addresses, cluster.user) if addresses else None
        yield Jobs(QuickYarn(rest, start), cluster.storage, cluster.user)
