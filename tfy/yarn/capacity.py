"""What the cluster's NodeManagers can hold, compared with what a job asks for, before anything is staged.

Without this a request that none can ever hold waits for ever (TonY#24 #432, dask-yarn#146), or is
refused by the ResourceManager with a text that names no setting of job.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfy.errors import SpecError, UnreachableError
from tfy.plan_model import ContainerPlan, Plan
from tfy.units import count_noun, format_memory

RUNNING = "running"
_NO_GPU = "this cluster has no GPU"
# Hadoop's client skips resources of a NodeManager that its own configuration does not name.
_BLIND = (
    "GPUs are seen only where this machine's Hadoop configuration has yarn.io/gpu among yarn.resource-types "
    "(resource-types.xml)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One NodeManager as the ResourceManager sees it: what it has in all, not what is free.

    `web` is its web address as `host:port`, `state` YARN's word in lower case.
    """

    host: str
    web: str
    labels: tuple[str, ...]
    state: str
    memory_mib: int
    vcores: int
    gpus: int


@dataclass(frozen=True, slots=True)
class _Wish:
    """Containers of one kind, and the field of job.yaml that asks for them."""

    field: str
    instances: int
    container: ContainerPlan


def check_capacity(plan: Plan, nodes: tuple[NodeFacts, ...]) -> None:
    """Refuses what this cluster could not hold even if it were empty.

    Raises one `SpecError` with a line for each problem, `UnreachableError` where no NodeManager runs.
    """
    running = tuple(node for node in nodes if node.state == RUNNING)
    if not running:
        raise UnreachableError(
            f"this cluster has no running NodeManager ({len(nodes)} known)",
            hint="look at the ResourceManager's page of NodeManagers",
        )
    wishes = _list_wishes(plan)
    problems = [text for wish in wishes for text in _explain_wish(wish, running)]
    if not problems:
        problems = _explain_sum(wishes, running)
    if problems:
        blind = any(_NO_GPU in text for text in problems)
        raise SpecError("\n".join(problems), hint=_BLIND if blind else None)


def _list_wishes(plan: Plan) -> list[_Wish]:
    wishes = [_Wish(f"tasks.{task.type}", task.instances, task.container) for task in plan.tasks]
    wishes.append(_Wish("tasks.driver", 1, plan.driver))
    if plan.spark is not None:
        wishes.append(_Wish("Spark's application master", 1, plan.spark.am))
    return wishes


def _explain_wish(wish: _Wish, running: tuple[NodeFacts, ...]) -> list[str]:
    """What no NodeManager can hold of one container, and how many of them all together cannot."""
    container, label = wish.container, wish.container.node_label
    nodes = _with_label(running, label)
    if not nodes:
        return [f"{wish.field}.node_label: no running NodeManager carries {label}; {_list_labels(running)}"]
    largest = f"the largest NodeManager{f' labelled {label}' if label else ''} offers"
    texts = []
    memory = max(node.memory_mib for node in nodes)
    if container.allocated_mib > memory:
        asked = f"{format_memory(container.memory_mib)} asked"
        if container.allocated_mib != container.memory_mib:
            asked += f" (rounded up by YARN to {format_memory(container.allocated_mib)})"
        texts.append(f"{wish.field}.memory: {asked}, {largest} {format_memory(memory)}")
    vcores = max(node.vcores for node in nodes)
    if container.vcores > vcores:
        texts.append(f"{wish.field}.vcores: {container.vcores} asked, {largest} {vcores}")
    return texts + _explain_gpus(wish, nodes, running)


def _explain_gpus(wish: _Wish, nodes: tuple[NodeFacts, ...], running: tuple[NodeFacts, ...]) -> list[str]:
    asked, label = wish.container.gpus, wish.container.node_label
    if asked == 0:
        return []
    head, labelled = f"{wish.field}.gpus: {asked} asked", f" labelled {label}" if label else ""
    if not any(node.gpus for node in running):
        return [f"{head}, {_NO_GPU}: {count_noun(len(running), 'NodeManager')}, none offers yarn.io/gpu"]
    largest = max(node.gpus for node in nodes)
    if asked > largest:
        return [f"{head}, the largest NodeManager{labelled} offers {largest}"]
    fitting = sum(node.gpus // asked for node in nodes)
    if wish.instances > fitting:
        return [
            f"{head} by each of {wish.instances} tasks, "
            f"the NodeManagers{labelled} have room for {fitting} such "
            f"({count_noun(sum(node.gpus for node in nodes), 'GPU')} "
            f"on {count_noun(len(nodes), 'NodeManager')})"
        ]
    return []


def _explain_sum(wishes: list[_Wish], running: tuple[NodeFacts, ...]) -> list[str]:
    """Where each task type alone has its GPUs, but not all of them at once: by label, and in all."""
    asking = [wish for wish in wishes if wish.container.gpus]
    texts = []
    for label in (*sorted({wish.container.node_label or "" for wish in asking} - {""}), None):
        group = [wish for wish in asking if label is None or wish.container.node_label == label]
        asked = sum(wish.instances * wish.container.gpus for wish in group)
        there = sum(node.gpus for node in _with_label(running, label))
        if asked > there:
            parts = ", ".join(f"{wish.field} {wish.instances} x {wish.container.gpus}" for wish in group)
            where = f"the NodeManagers labelled {label} offer" if label else "this cluster has"
            texts.append(f"tasks: {count_noun(asked, 'GPU')} asked at once ({parts}), {where} {there}")
    return texts


def _with_label(nodes: tuple[NodeFacts, ...], label: str | None) -> tuple[NodeFacts, ...]:
    """Where a container may go. One without a label may go anywhere: a label need not be exclusive."""
    return tuple(node for node in nodes if label is None or label in node.labels)


def _list_labels(nodes: tuple[NodeFacts, ...]) -> str:
    labels = sorted({label for node in nodes for label in node.labels})
    return f"labels of this cluster: {', '.join(labels)}" if labels else "no NodeManager has a label"
