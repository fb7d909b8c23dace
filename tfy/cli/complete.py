"""What a shell offers when a job or a task is being typed: at once, or nothing, and never a word."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import click
from click.shell_completion import CompletionItem

from tfy.bounded import call_within
from tfy.errors import TfyError, UnreachableError

if TYPE_CHECKING:
    from tfy.yarn.application import Application

# Nobody waits longer for a key.
_LIMIT_S = 1.0


def complete_job(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of the user's jobs, newest first; ids where an id is begun."""
    try:
        jobs = call_within(_LIMIT_S, lambda: _list_jobs(os.environ), thread="complete")
    except (TfyError, OSError):
        return []
    return offer_jobs(jobs, incomplete)


def complete_task(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The tasks of the job that the argument `job` names, but those that are given already."""
    job, given = context.params.get("job"), context.params.get(parameter.name or "") or ()
    try:
        tasks = call_within(_LIMIT_S, lambda: _list_tasks(os.environ, str(job)), thread="complete")
    except (TfyError, OSError):
        return []
    return [CompletionItem(task) for task in tasks if task.startswith(incomplete) and task not in given]


def offer_jobs(jobs: Iterable[Application], incomplete: str) -> list[CompletionItem]:
    """What `incomplete` may become, of `jobs` in their order."""
    offers: dict[str, str] = {}
    for job in jobs:
        state = job.final_status if job.state.final else job.state.value
        offers.setdefault(job.name, f"{state}, {job.id}")
        if incomplete:
            about = f"{job.name}, {state}"
            offers.update(dict.fromkeys((job.id, job.submission_id or ""), about))
    return [CompletionItem(word, help=about) for word, about in offers.items() if word.startswith(incomplete)]


def _list_jobs(environ: Mapping[str, str]) -> Sequence[Application]:
    from tfy.yarn.application import Wanted
    from tfy.yarn.hadoop import find_hadoop
    from tfy.yarn.rest import RmRest, find_addresses
    from tfy.yarn.session import find_user

    addresses = find_addresses(find_hadoop(environ).properties)
    if not addresses:
        return ()
    user = find_user(environ)
    found = RmRest(addresses, user, limit_s=_LIMIT_S).list_applications(Wanted(user=user))
    return found[::-1]


def _list_tasks(environ: Mapping[str, str], job: str) -> Sequence[str]:
    from tfy.yarn.follow import Jobs
    from tfy.yarn.rest import RmRest, find_addresses
    from tfy.yarn.session import QuickYarn, find_cluster

    cluster = find_cluster(environ)
    addresses = find_addresses(cluster.hadoop.properties)
    rest = RmRest(addresses, cluster.user, limit_s=_LIMIT_S) if addresses else None
    jobs = Jobs(QuickYarn(rest, _refuse_java), cluster.storage, cluster.user)
    report = jobs.view(jobs.find(job).id).report
    return [record.task for record in report.tasks] if report else []


def _refuse_java() -> NoReturn:
    """A key that is pressed starts no Java, which would take seconds."""
    raise UnreachableError("this ResourceManager is not asked by REST")
