"""JobSpec → Plan: the resolved request, as pure data. Nothing is sent, nothing is read.

Container sizes are rounded up as YARN's scheduler will round them, and what the cluster cannot
give to one container is refused here, with both numbers, rather than waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfy.contract import (
    LOCAL_CODE,
    LOCAL_HADOOP_CONF,
    LOCAL_PLAN,
    LOCAL_PROGRAM,
    ContainerPlan,
    Hosted,
    Plan,
    Runs,
    SparkPlan,
    StagedFile,
    TaskPlan,
)
from tfy.errors import SpecError
from tfy.job_keys import DEFAULT_CHECKPOINT_KEEP
from tfy.paths import JobDir
from tfy.spec import ContainerSpec, JobSpec, TaskSpec, TaskType
from tfy.units import format_memory

STAGED_CODE = StagedFile(name="tfy.zip", local_name=LOCAL_CODE, archive=True)
STAGED_PROGRAM = StagedFile(name="program.zip", local_name=LOCAL_PROGRAM, archive=True)
STAGED_HADOOP_CONF = StagedFile(name="hadoop_conf.zip", local_name=LOCAL_HADOOP_CONF, archive=True)
STAGED_PLAN = StagedFile(name="plan.json", local_name=LOCAL_PLAN, archive=False)
STAGED = (STAGED_CODE, STAGED_PROGRAM, STAGED_HADOOP_CONF, STAGED_PLAN)
"""What every container gets, from the folder `files/` of the job's directory."""

# Measured (design.md, section 1): an executor's JVM needs 245 MiB; the container's rest is Python's.
EXECUTOR_HEAP_MIB = 512
# Spark asks YARN for the heap and at least 384 MiB beside it.
SPARK_AM_HEAP_MIB = 384
SPARK_AM_OVERHEAD_MIB = 384
# In the driver's container beside the heap of Spark's driver: Skein's JVM (about 256 MiB), Python (about
# 150), and what Spark's JVM takes outside its heap. A heap that seldom fills is worth less than these.
DRIVER_OUTSIDE_HEAP_MIB = 544
# Spark refuses to start with less than 450 MiB, as the JVM counts them: without one survivor space.
DRIVER_LEAST_HEAP_MIB = 480

_TASK_ORDER: tuple[TaskType, ...] = ("chief", "worker", "ps")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """What the plan has to know of the cluster and of who submits.

    `default_fs` is a URI as `hdfs://host:port`, `python` the interpreter's path on every node, the
    limits are the ResourceManager's for one container.
    """

    default_fs: str
    user: str
    python: str
    minimum_allocation_mib: int
    maximum_allocation_mib: int
    maximum_vcores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """Containers of one kind, for a person: `allocated_mib` is what YARN makes of `memory_mib`."""

    container: str
    count: int
    memory_mib: int
    allocated_mib: int
    vcores: int


def make_plan(
    spec: JobSpec, site: SiteFacts, submission_id: str, staged: tuple[StagedFile, ...] = STAGED
) -> Plan:
    """The request that `spec` makes of the cluster `site`.

    Raises one `SpecError` with a line for each container that is larger than YARN grants.
    """
    spark_am = ContainerSpec(memory_mib=SPARK_AM_HEAP_MIB + SPARK_AM_OVERHEAD_MIB, vcores=1)
    wanted = [(f"tasks.{task.type}", task.container) for task in spec.tasks]
    wanted += [("tasks.driver", spec.driver), ("Spark's application master", spark_am)]
    excesses = [text for field, container in wanted for text in _explain_excess(field, container, site)]
    if excesses:
        raise SpecError("\n".join(f"{spec.source.name}: {text}" for text in excesses))
    tasks = sorted(spec.tasks, key=lambda task: _TASK_ORDER.index(task.type))
    return Plan(
        submission_id=submission_id,
        name=spec.name,
        user=site.user,
        queue=spec.queue,
        strategy=spec.strategy,
        job_dir=JobDir.of(site.default_fs, site.user, submission_id).root,
        python=site.python,
        program=spec.program,
        args=spec.args,
        env=spec.env,
        tasks=tuple(_plan_task(task, site) for task in tasks),
        driver=_round_up(spec.driver, site),
        spark=_plan_spark(spec, spark_am, site),
        staged=staged,
        input_paths=spec.input.paths if spec.input else (),
        checkpoint_dir=spec.checkpoint.dir if spec.checkpoint else None,
        checkpoint_keep=spec.checkpoint.keep if spec.checkpoint else DEFAULT_CHECKPOINT_KEEP,
        start_timeout_s=spec.timeouts.start_s,
        total_timeout_s=spec.timeouts.total_s,
    )


def list_containers(plan: Plan) -> tuple[PlanRow, ...]:
    """Every container that the job takes, by kind: tasks in the plan's order, then what runs beside them."""
    kinds = [(task.type, task.instances, task.container) for task in plan.tasks]
    kinds += [("driver", 1, plan.driver), ("spark am", 1, plan.spark.am)]
    return tuple(
        PlanRow(
            container=name,
            count=count,
            memory_mib=container.memory_mib,
            allocated_mib=container.allocated_mib,
            vcores=container.vcores,
        )
        for name, count, container in kinds
    )


def sum_containers(rows: tuple[PlanRow, ...]) -> PlanRow:
    """The whole job's demand: every column multiplied by its count, and summed."""
    return PlanRow(
        container="total",
        count=sum(row.count for row in rows),
        memory_mib=sum(row.count * row.memory_mib for row in rows),
        allocated_mib=sum(row.count * row.allocated_mib for row in rows),
        vcores=sum(row.count * row.vcores for row in rows),
    )


def _plan_task(task: TaskSpec, site: SiteFacts) -> TaskPlan:
    """Under parameter_server the program runs on the chief; workers and ps run TensorFlow's server."""
    hosted: Hosted = "executor" if task.type == "worker" else "service"
    runs: Runs = "program" if task.type == "chief" else "server"
    return TaskPlan(
        type=task.type,
        instances=task.instances,
        container=_round_up(task.container, site),
        hosted=hosted,
        runs=runs,
    )


def _plan_spark(spec: JobSpec, am: ContainerSpec, site: SiteFacts) -> SparkPlan:
    worker_mib = next(task.container.memory_mib for task in spec.tasks if task.type == "worker")
    return SparkPlan(
        am=_round_up(am, site),
        am_heap_mib=SPARK_AM_HEAP_MIB,
        executor_heap_mib=EXECUTOR_HEAP_MIB,
        executor_overhead_mib=worker_mib - EXECUTOR_HEAP_MIB,
        driver_heap_mib=max(spec.driver.memory_mib - DRIVER_OUTSIDE_HEAP_MIB, DRIVER_LEAST_HEAP_MIB),
    )


def _round_up(container: ContainerSpec, site: SiteFacts) -> ContainerPlan:
    """As YARN does: up to a multiple of the minimum allocation, but not over the maximum."""
    step = max(site.minimum_allocation_mib, 1)
    rounded = -(-container.memory_mib // step) * step
    return ContainerPlan(
        memory_mib=container.memory_mib,
        allocated_mib=min(rounded, site.maximum_allocation_mib),
        vcores=container.vcores,
    )


def _explain_excess(field: str, container: ContainerSpec, site: SiteFacts) -> list[str]:
    texts, over = [], "more than this cluster gives one container"
    if container.memory_mib > site.maximum_allocation_mib:
        texts.append(
            f"{field}.memory: {format_memory(container.memory_mib)} is {over}: "
            f"{format_memory(site.maximum_allocation_mib)} (yarn.scheduler.maximum-allocation-mb)"
        )
    if container.vcores > site.maximum_vcores:
        texts.append(
            f"{field}.vcores: {container.vcores} is {over}: "
            f"{site.maximum_vcores} (yarn.scheduler.maximum-allocation-vcores)"
        )
    return texts
