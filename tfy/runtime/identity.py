"""Who this process is in the job: read once from the container's environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfy.contract import ENV_TASK_INDEX, ENV_TASK_TYPE, LOCAL_INPUT, LOCAL_PLAN, from_json, task_name
from tfy.errors import InternalError
from tfy.plan_model import Plan
from tfy.shares import InputShares

ENV_HADOOP_USER = "HADOOP_USER_NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerIdentity:
    """The YARN container that hosts this process, and the application master that it belongs to."""

    container_id: str
    host: str
    work_dir: Path
    log_dir: Path
    application_id: str
    appmaster: str
    hadoop_user: str | None
    """Whose job this is where Hadoop trusts names (simple authentication); else None."""
    node_web: str | None = None
    """The web address (`host:port`) of the NodeManager."""


@dataclass(frozen=True, slots=True)
class Task:
    """One process of the training program. `str(task)` is its name, as `worker:3`."""

    type: str
    index: int

    def __str__(self) -> str:
        return task_name(self.type, self.index)


def read_container(environ: Mapping[str, str]) -> ContainerIdentity:
    """The container, from what the NodeManager and Skein put into the environment."""
    log_dirs = _need(environ, "LOG_DIRS").split(",")
    web_port = environ.get("NM_HTTP_PORT")
    return ContainerIdentity(
        container_id=_need(environ, "CONTAINER_ID"),
        host=_need(environ, "NM_HOST"),
        work_dir=Path(_need(environ, "PWD")),
        log_dir=Path(log_dirs[0]),
        application_id=_need(environ, "SKEIN_APPLICATION_ID"),
        appmaster=_need(environ, "SKEIN_APPMASTER_ADDRESS"),
        hadoop_user=environ.get(ENV_HADOOP_USER),
        node_web=f"{_need(environ, 'NM_HOST')}:{web_port}" if web_port else None,
    )


def read_task(environ: Mapping[str, str]) -> Task:
    """The task, from what the driver put into the environment."""
    return Task(_need(environ, ENV_TASK_TYPE), int(_need(environ, ENV_TASK_INDEX)))


def load_plan(work_dir: Path) -> Plan:
    """The job's plan, localized into the container's working directory."""
    return from_json((work_dir / LOCAL_PLAN).read_bytes(), Plan)


def load_shares(work_dir: Path) -> InputShares:
    """Who reads what of the job's input, localized into the container's working directory."""
    return from_json((work_dir / LOCAL_INPUT).read_bytes(), InputShares)


def _need(environ: Mapping[str, str], name: str) -> str:
    try:
        return environ[name]
    except KeyError:
        raise InternalError(f"the container's environment has no {name}") from None
