"""Plan → Skein's ApplicationSpec: pure, and the only place that writes Skein's words."""

from __future__ import annotations

import shlex

import skein

from tfy import contract
from tfy.paths import JobDir
from tfy.plan_model import ContainerPlan, Plan, TaskPlan

# The names of Skein's services are our task types.
_DRIVER = "driver"
_NODE = "node"


def make_application_spec(plan: Plan) -> skein.ApplicationSpec:
    """The Skein application of a job: its master is the driver, its services start at zero.

    The driver asks for each service container once Spark's executors are granted. Skein itself
    never judges and never restarts: `allow_failures`, no restarts, one attempt.
    """
    return skein.ApplicationSpec(
        name=plan.name,
        queue=plan.queue,
        tags={contract.TAG_ALL, contract.submission_tag(plan.submission_id)},
        max_attempts=1,
        master=skein.Master(
            resources=_resources(plan.driver),
            env=_environment(plan),
            files=_files(plan),
            script=make_script(plan, _DRIVER),
        ),
        node_label=plan.driver.node_label or "",
        services={task.type: _service(plan, task) for task in plan.tasks if task.hosted == "service"},
    )


def make_script(plan: Plan, process: str) -> str:
    """The shell script of a container: one process of the cluster side, in place of the shell."""
    return "\n".join(
        (
            "set -e",
            f'export PYTHONPATH="$PWD/{contract.LOCAL_CODE}"',
            f'export HADOOP_CONF_DIR="$PWD/{contract.LOCAL_HADOOP_CONF}"',
            'export HOME="$PWD"',
            f"exec {shlex.quote(plan.python)} -m tfy.runtime {process}",
        )
    )


def _service(plan: Plan, task: TaskPlan) -> skein.Service:
    return skein.Service(
        instances=0,
        resources=_resources(task.container),
        env=_environment(plan),
        files=_files(plan),
        script=make_script(plan, _NODE),
        node_label=task.container.node_label or "",
        allow_failures=True,
        max_restarts=0,
    )


def _resources(container: ContainerPlan) -> skein.Resources:
    return skein.Resources(memory=container.memory_mib, vcores=container.vcores, gpus=container.gpus)


def _environment(plan: Plan) -> dict[str, str]:
    return {
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        "PYSPARK_PYTHON": plan.python,
        "PYSPARK_DRIVER_PYTHON": plan.python,
    }


def _files(plan: Plan) -> dict[str, skein.File]:
    job_dir = JobDir(plan.job_dir)
    return {
        staged.local_name: skein.File(
            source=job_dir.file(staged.name),
            type="archive" if staged.archive else "file",
            visibility="application",
        )
        for staged in plan.staged
    }
