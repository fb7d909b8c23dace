"""What a follower tells of a job: pure functions from views to lines of text."""

from __future__ import annotations

from tfy.contract import SIDE_TASKS, type_of_task
from tfy.records import JobReport, Metric, TaskRecord
from tfy.shares import InputReport
from tfy.states import JobState, TaskState
from tfy.units import format_duration
from tfy.yarn.follow import JobView


def tell_changes(old: JobView | None, new: JobView) -> list[str]:
    """What is new since the last view, oldest first: phases, then tasks."""
    lines = []
    if describe_phase(old) != describe_phase(new):
        lines.append(describe_phase(new))
    before = {record.task: record for record in old.report.tasks} if old and old.report else {}
    for record in new.report.tasks if new.report else ():
        earlier = before.get(record.task)
        if earlier is None or earlier.state is not record.state:
            if record.state is TaskState.WAITING:
                continue
            lines.append(describe_task(record))
    return lines


def describe_phase(view: JobView | None) -> str:
    """Where the job stands, in a few words."""
    if view is None:
        return ""
    state: JobState = view.state
    if state is JobState.SUBMITTED:
        return f"waiting for YARN to start the application in queue {view.application.queue}"
    if state.final:
        return str(state.value)
    if view.trouble is not None:
        return f"running; how far it is cannot be read: {view.trouble}"
    if view.report is None:
        return "starting the driver"
    return view.report.phase


def describe_task(record: TaskRecord) -> str:
    """One task: its state, where, and how it ended."""
    text = f"{record.task} {record.state.value}"
    if record.host:
        text += f" on {record.host}"
    if record.state.final and record.error:
        text += f": {record.error.splitlines()[0]}"
    return text


def describe_progress(report: JobReport | None) -> str:
    """Steps and metrics of the program, then what each worker has done; empty before any."""
    if report is None:
        return ""
    first = _first_reporter(report)
    parts = [f"step {first.progress.steps}"] if first is not None else []
    parts += [f"{label} {value}" for label, value in _tell_metrics(report)]
    parts += [
        f"{record.task} {record.progress.steps} steps"
        for record in report.tasks
        if record.task.startswith("worker:") and record.progress.steps
    ]
    return "  ".join(parts)


def _first_reporter(report: JobReport) -> TaskRecord | None:
    """The task whose metrics are the job's: the report has the one that leads first."""
    return next((record for record in report.tasks if record.progress.metrics), None)


def _tell_metrics(report: JobReport) -> list[tuple[str, str]]:
    """Each metric once: another task's by that task's name, and only where it has another value."""
    first = _first_reporter(report)
    if first is None:
        return []
    known = set(first.progress.metrics)
    rows = [(metric.name, format_metric(metric)) for metric in first.progress.metrics]
    for record in report.tasks:
        others = [metric for metric in record.progress.metrics if metric not in known]
        rows += [(f"{record.task} {metric.name}", format_metric(metric)) for metric in others]
    return rows


def format_metric(metric: Metric) -> str:
    """A metric's value with the digits that a person reads."""
    return metric.value if isinstance(metric.value, str) else f"{metric.value:.4g}"


def tell_figures(report: JobReport) -> list[tuple[str, str]]:
    """What the job brought, as label and text: metrics, checkpoint, and each worker's share."""
    rows = _tell_metrics(report)
    rows += [
        ("checkpoint", path)
        for path in dict.fromkeys(record.progress.checkpoint for record in report.tasks)
        if path is not None
    ]
    if report.input is not None:
        rows += _tell_input(report.input, report.tasks)
    rows += [
        (
            record.task,
            f"on {record.host}: read {record.progress.bytes_read:,} bytes "
            f"in {record.progress.reads:,} reads, ran {record.progress.steps:,} steps",
        )
        for record in report.tasks
        if record.task.startswith("worker:") and record.host
    ]
    return rows


def _tell_input(told: InputReport, tasks: tuple[TaskRecord, ...]) -> list[tuple[str, str]]:
    rows = [("input", told.shares)]
    read = {
        record.task: record.progress.input.records
        for record in tasks
        if type_of_task(record.task) == told.task_type and record.progress.input is not None
    }
    if any(read.values()):
        listed = ", ".join(f"{task} {records:,}" for task, records in read.items())
        rows += [("records read", f"{sum(read.values()):,} ({listed})"), ("first epoch", told.epoch)]
    return rows


def describe_log(view: JobView) -> str | None:
    """The command that shows the log in which a failed job's cause is; None where the job did not fail."""
    if view.state is not JobState.FAILED:
        return None
    records = view.report.tasks if view.report is not None else ()
    for state in (TaskState.FAILED, TaskState.LOST):
        failed = [record for record in records if record.state is state and record.container_id is not None]
        if failed:
            first = min(failed, key=lambda record: record.ended or float("inf"))
            return f"tfy logs {view.application.id} {first.task}"
    return f"tfy logs {view.application.id} --driver"


def _list_troubles(report: JobReport) -> list[TaskRecord]:
    """The side tasks that went wrong, which is no failure of the job."""
    return [
        record
        for record in report.tasks
        if type_of_task(record.task) in SIDE_TASKS and record.error is not None
    ]


def describe_end(view: JobView) -> str:
    """The one line that a followed job ends with."""
    application = view.application
    text = f"{application.name} {view.state.value}"
    if application.started and application.finished:
        text += f" in {format_duration(round((application.finished - application.started).total_seconds()))}"
    if view.cause is not None:
        text += f": {view.cause.splitlines()[0]}"
    elif view.report is not None and view.state is JobState.SUCCEEDED:
        text += "".join(f", but {describe_task(record)}" for record in _list_troubles(view.report))
    return f"{text} ({application.id})"
