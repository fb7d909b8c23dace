"""Submitting a job: spec → plan → staged files → Skein application → application id."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

from tfy.errors import SpecError, TfyError, UnreachableError
from tfy.paths import JobDir
from tfy.plan import SiteFacts, make_plan
from tfy.plan_model import Plan
from tfy.spec import JobSpec
from tfy.yarn.application import NoAnswerError
from tfy.yarn.capacity import check_capacity
from tfy.yarn.client import Yarn
from tfy.yarn.convert import make_application_spec
from tfy.yarn.inputs import SharedInput, share_input
from tfy.yarn.outputs import check_rivals, check_writable
from tfy.yarn.record_counts import IndexFolder
from tfy.yarn.session import Cluster
from tfy.yarn.stage import Sources, stage_job

# YARN's own defaults, for what the client's configuration does not say.
_MINIMUM_ALLOCATION_MIB = 1024
# A limit that only the ResourceManager knows is the ResourceManager's to enforce.
_NO_LIMIT = sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job that YARN has taken."""

    application_id: str
    submission_id: str
    job_dir: str


def plan_job(spec: JobSpec, cluster: Cluster, *, fresh: bool = False) -> Plan:
    """The resolved request, under a new submission id; `fresh` moves older checkpoints aside."""
    return make_plan(spec, read_site(cluster), str(uuid.uuid4()), fresh=fresh)


def share_job_input(
    plan: Plan, cluster: Cluster, narrate: Callable[[str], None], *, keeps: bool
) -> SharedInput | None:
    """Lists what the job reads and shares it out among its tasks; None where it has no input.

    With `keeps`, records that had to be counted are remembered on HDFS. Raises `SpecError`.
    """
    if plan.input is None:
        return None
    index = IndexFolder(storage=cluster.storage, folder=JobDir(plan.job_dir).index, keeps=keeps)
    tasks = plan.task(plan.input.task_type).instances
    return share_input(cluster.storage, plan.input, tasks, index, narrate)


def read_site(cluster: Cluster) -> SiteFacts:
    """What the plan must know of the cluster, from its configuration."""
    return SiteFacts(
        default_fs=cluster.storage.default_fs,
        user=cluster.user,
        python=sys.executable,
        minimum_allocation_mib=_read_number(
            cluster.hadoop.properties, "yarn.scheduler.minimum-allocation-mb", _MINIMUM_ALLOCATION_MIB
        ),
        maximum_allocation_mib=_read_number(
            cluster.hadoop.properties, "yarn.scheduler.maximum-allocation-mb", _NO_LIMIT
        ),
        maximum_vcores=_read_number(
            cluster.hadoop.properties, "yarn.scheduler.maximum-allocation-vcores", _NO_LIMIT
        ),
        legacy_keras=find_spec("tf_keras") is not None,
    )


def submit_job(
    plan: Plan,
    yarn: Yarn,
    cluster: Cluster,
    sources: Sources,
    announce: Callable[[Submission], None],
    narrate: Callable[[str], None],
) -> str:
    """Stages the job, submits it, and announces it the moment that YARN has taken it; its application id.

    Where it was not submitted or YARN refuses, the job's directory is removed again. Where YARN, once
    asked, does not answer, or on Ctrl-C then, it may have taken the job, which needs the directory.
    """
    job_dir = JobDir(plan.job_dir)
    try:
        stage_job(cluster.storage, plan, sources, narrate)
    except BaseException:
        # On Ctrl-C too: YARN has not been asked yet.
        with suppress(UnreachableError):
            cluster.storage.delete(job_dir.root)
        narrate("nothing was submitted")
        raise
    narrate("submitting")
    doubt = f"YARN may have taken the job all the same: tfy status {plan.name}"
    try:
        application_id = yarn.submit(make_application_spec(plan))
    except NoAnswerError as error:
        error.hint = doubt
        raise
    except KeyboardInterrupt:
        narrate(doubt)
        raise
    except TfyError:
        with suppress(UnreachableError):
            cluster.storage.delete(job_dir.root)
        raise
    announce(
        Submission(application_id=application_id, submission_id=plan.submission_id, job_dir=plan.job_dir)
    )
    try:
        cluster.storage.write(job_dir.application_id, application_id.encode())
    except UnreachableError as error:
        narrate(f"the application id could not be noted in the job's directory: {error.message}")
    return application_id


def check_request(plan: Plan, yarn: Yarn, cluster: Cluster, narrate: Callable[[str], None]) -> None:
    """Refuses what this cluster cannot give, before anything is listed, counted or staged for it."""
    check_queue(plan.queue, yarn.list_queues())
    check_capacity(plan, yarn.list_nodes())
    check_rivals(plan, yarn, cluster.storage, narrate)
    check_writable(plan, cluster.storage)


def check_queue(queue: str, queues: tuple[str, ...]) -> None:
    """Refuses a queue that the scheduler does not have."""
    names = {queue, queue.rpartition(".")[2], f"root.{queue}"}
    if queues and not names & set(queues):
        raise SpecError(f"queue: {queue} is no queue of this cluster; its queues: {', '.join(queues)}")


def _read_number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name, "")
    return int(text) if text.isdigit() else default
