"""JobSpec → Plan: the resolved request, as pure data. Nothing is sent, nothing is read.

Container sizes are rounded up as YARN's scheduler will round them, and what the cluster cannot
give to one container is refused here, with both numbers, rather than waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfy.contract import LOCAL_CODE, LOCAL_HADOOP_CONF, LOCAL_INPUT, LOCAL_PLAN, LOCAL_PROGRAM
from tfy.errors import SpecError
from tfy.job_keys import DEFAULT_CHECKPOINT_KEEP, DEFAULT_EXPORT_KEEP
from tfy.paths import JobDir
from tfy.plan_model import ContainerPlan, Hosted, InputPlan, Plan, Runs, SparkPlan, StagedFile, TaskPlan
from tfy.rdma_rules import explain_rdma
from tfy.spec import ContainerSpec, JobSpec, Strategy, TaskSpec, TaskType
from tfy.units import format_memory

STAGED_CODE = StagedFile(name="tfy.zip", local_name=LOCAL_CODE, archive=True)
STAGED_PROGRAM = StagedFile(name="program.zip", local_name=LOCAL_PROGRAM, archive=True)
STAGED_HADOOP_CONF = StagedFile(name="hadoop_conf.zip", local_name=LOCAL_HADOOP_CONF, archive=True)
STAGED_PLAN = StagedFile(name="plan.json", local_name=LOCAL_PLAN, archive=False)
STAGED_INPUT = StagedFile(name="input.json", local_name=LOCAL_INPUT, archive=False)
STAGED = (STAGED_CODE, STAGED_PROGRAM, STAGED_HADOOP_CONF, STAGED_PLAN)
"""What every container gets, from `files/` in the job's directory; the input where there is some."""

# Measured (design.md, section 1): an executor's JVM needs 245 MiB; the container's rest is Python's.
EXECUTOR_HEAP_MIB = 512
# Spark asks YARN for the heap and at least 384 MiB beside it.
SPARK_AM_HEAP_MIB = 384
SPARK_AM_OVERHEAD_MIB = 384
_SPARK_AM = ContainerSpec(memory_mib=SPARK_AM_HEAP_MIB + SPARK_AM_OVERHEAD_MIB, vcores=1)
# In the driver's container beside the heap of Spark's driver: Skein's JVM (about 256 MiB), Python (about
# 150), and what Spark's JVM takes outside its heap. A heap that seldom fills is worth less than these.
DRIVER_OUTSIDE_HEAP_MIB = 544
# Spark refuses to start with less than 450 MiB, as the JVM counts them: without one survivor space.
DRIVER_LEAST_HEAP_MIB = 480

_TASK_ORDER: tuple[TaskType, ...] = ("chief", "worker", "ps", "evaluator")
_LEGACY_KERAS = ("TF_USE_LEGACY_KERAS", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """What the plan has to know of the cluster and of who submits.

    `default_fs` is a URI as `hdfs://host:port`, `python` the interpreter's path on every node, the
    limits are the ResourceManager's for one container. `legacy_keras` says whether that Python has tf_keras.
    """

    default_fs: str
    user: str
    python: str
    minimum_allocation_mib: int
    maximum_allocation_mib: int
    maximum_vcores: int
    legacy_keras: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """Containers of one kind, for a person: `allocated_mib` is what YARN makes of `memory_mib`."""

    container: str
    count: int
    memory_mib: int
    allocated_mib: int
    vcores: int
    gpus: int
    node_label: str | None = None


def make_plan(spec: JobSpec, site: SiteFacts, submission_id: str, *, fresh: bool = False) -> Plan:
    """The request that `spec` makes of the cluster `site`; `fresh` moves older checkpoints aside.

    Raises one `SpecError` with a line for each container that is larger than YARN grants, and where RDMA
    is required that nothing of the job could use.
    """
    wanted = [(f"tasks.{task.type}", task.container) for task in spec.tasks]
    wanted += [("tasks.driver", spec.driver), ("Spark's application master", _SPARK_AM)]
    problems = [text for field, container in wanted for text in _explain_excess(field, container, site)]
    problems += explain_rdma(spec)
    if problems:
        raise SpecError("\n".join(f"{spec.source.name}: {text}" for text in problems))
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
        env=_plan_env(spec, site),
        tasks=tuple(_plan_task(task, spec.strategy, site) for task in tasks),
        driver=_round_up(spec.driver, site),
        spark=_plan_spark(spec, site),
        staged=(*STAGED, STAGED_INPUT) if spec.input else STAGED,
        input=_plan_input(spec),
        rdma=spec.rdma,
        checkpoint_dir=spec.checkpoint.dir if spec.checkpoint else None,
        checkpoint_keep=spec.checkpoint.keep if spec.checkpoint else DEFAULT_CHECKPOINT_KEEP,
        fresh=fresh,
        export_dir=spec.export.dir if spec.export else None,
        export_keep=spec.export.keep if spec.export else DEFAULT_EXPORT_KEEP,
        start_timeout_s=spec.timeouts.start_s,
        total_timeout_s=spec.timeouts.total_s,
        evaluate_timeout_s=spec.timeouts.evaluate_s,
    )


def list_containers(plan: Plan) -> tuple[PlanRow, ...]:
    """Every container that the job takes, by kind: tasks in the plan's order, then what runs beside them."""
    kinds = [(task.type, task.instances, task.container) for task in plan.tasks]
    kinds.append(("driver", 1, plan.driver))
    if plan.spark is not None:
        kinds.append(("spark am", 1, plan.spark.am))
    return tuple(
        PlanRow(
            container=name,
            count=count,
            memory_mib=container.memory_mib,
            allocated_mib=container.allocated_mib,
            vcores=container.vcores,
            gpus=container.gpus,
            node_label=container.node_label,
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
        gpus=sum(row.count * row.gpus for row in rows),
    )


def _plan_task(task: TaskSpec, strategy: Strategy, site: SiteFacts) -> TaskPlan:
    """Under parameter_server the program runs on the chief; workers and ps run TensorFlow's server."""
    hosted: Hosted = "executor" if task.type == "worker" else "service"
    serves = strategy == "parameter_server" and task.type in ("worker", "ps")
    runs: Runs = "server" if serves else "program"
    return TaskPlan(
        type=task.type,
        instances=task.instances,
        container=_round_up(task.container, site),
        hosted=hosted,
        runs=runs,
    )


def _plan_env(spec: JobSpec, site: SiteFacts) -> tuple[tuple[str, str], ...]:
    """The job's own environment, and which Keras the strategy needs where the job does not say.

    `model.fit` of Keras 3 fails under MultiWorkerMirroredStrategy; that of tf_keras does not.
    """
    chosen = dict(spec.env)
    if spec.strategy == "multi_worker_mirrored" and site.legacy_keras and _LEGACY_KERAS[0] not in chosen:
        return (*spec.env, _LEGACY_KERAS)
    return spec.env


def _plan_input(spec: JobSpec) -> InputPlan | None:
    """The workers share the input; where there are none, the chief has all of it."""
    if spec.input is None:
        return None
    workers = any(task.type == "worker" for task in spec.tasks)
    return InputPlan(
        paths=spec.input.paths,
        shard=spec.input.shard,
        unequal=spec.input.unequal,
        seed=spec.input.seed,
        task_type="worker" if workers else "chief",
    )


def _plan_spark(spec: JobSpec, site: SiteFacts) -> SparkPlan | None:
    workers = [task.container.memory_mib for task in spec.tasks if task.type == "worker"]
    if not workers:
        return None
    return SparkPlan(
        am=_round_up(_SPARK_AM, site),
        am_heap_mib=SPARK_AM_HEAP_MIB,
        executor_heap_mib=EXECUTOR_HEAP_MIB,
        executor_overhead_mib=workers[0] - EXECUTOR_HEAP_MIB,
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
        gpus=container.gpus,
        node_label=container.node_label,
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
