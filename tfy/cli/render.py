"""The only place that prints: results on standard output, narration and errors on standard error."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tfy.plan import PlanRow, list_containers, sum_containers
from tfy.plan_model import Plan
from tfy.records import TaskRecord
from tfy.units import format_duration, format_memory

if TYPE_CHECKING:
    # These load Skein and HDFS, which an error message or a dry run does without.
    from tfy.cli.listing import JobRow
    from tfy.yarn.follow import JobView
    from tfy.yarn.submit import Submission

# Where no terminal says how wide it is, nobody reads column by column either: never fold a line.
_WIDTH_OF_A_FILE = 500


class PlainConsole(Console):
    """A console that leaves it to the edge what happens when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Rich would exit here, with the status of a failed job."""
        raise


def make_console(*, stderr: bool = False) -> Console:
    """A console that shows text as it is: no markup, no guesses at what to colour."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    return PlainConsole(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


def narrate(text: str) -> None:
    """One message on the way, on standard error."""
    # Not through a console: only so it appears above a LiveLine.
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show_text(text: str) -> None:
    """One line of a result, on standard output, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def is_terminal() -> bool:
    """Whether results go to a terminal, whose last line can be drawn anew."""
    return sys.stdout.isatty() and not make_console().is_dumb_terminal


def redraw(text: str) -> None:
    """Puts `text`, as far as it fits, in place of a terminal's last line, without ending it."""
    width = make_console().width - 1
    sys.stdout.write(f"\r\x1b[K{text[:width]}")
    sys.stdout.flush()


def show_json(value: object) -> None:
    """A result as one line of JSON, on standard output."""
    show_text(msgspec.json.encode(value).decode())


def show_error(message: str, hint: str | None = None) -> None:
    """What went wrong and, where there is one, what helps, on standard error."""
    console = make_console(stderr=True)
    for label, style, text in (("error", "bold red", message), ("hint", "bold", hint)):
        if text:
            body = text.replace("\n", "\n" + " " * len(f"{label}: "))
            console.print(Text.assemble((f"{label}: ", style), body), soft_wrap=True)


def show_plan(plan: Plan, shared: Iterable[tuple[str, str]] = (), *, as_json: bool) -> None:
    """What `plan` asks of YARN; `shared` tells how its input is shared out, as label and text."""
    if as_json:
        show_json(plan)
        return
    console = make_console()
    console.print(make_pairs(_plan_pairs(plan, shared)))
    console.print()
    rows = list_containers(plan)
    cells = [_plan_cells(row) for row in (*rows, sum_containers(rows))]
    headings = ("container", "count", "memory", "allocated", "vcores", "gpus", "label")
    console.print(make_table(headings, cells, right=(1, 2, 3, 4, 5)))
    console.print("\nnothing was sent: this was a dry run", soft_wrap=True)


def show_submission(submission: Submission, *, as_json: bool) -> None:
    """The application id, at once, for whoever started this."""
    if as_json:
        show_json(submission)
    else:
        show_text(submission.application_id)


def show_status(view: JobView, *, as_json: bool) -> None:
    """How a job stands, or how it ended."""
    from tfy.cli import story

    if as_json:
        show_json(_view_data(view))
        return
    console = make_console()
    application = view.application
    pairs = [("job", application.name), ("application", application.id), ("state", view.state.value)]
    if not view.state.final:
        pairs.append(("phase", story.describe_phase(view)))
    pairs += [("queue", application.queue), ("directory", view.job_dir.root)]
    if application.tracking_url:
        pairs.append(("tracking URL", application.tracking_url))
    if view.report is not None:
        pairs += story.tell_figures(view.report)
    console.print(make_pairs(pairs))
    if view.report is not None and view.report.tasks:
        console.print()
        console.print(make_tasks_table(view.report.tasks))
    if view.cause is not None:
        console.print()
        console.print(f"{view.state.value}: {view.cause}", soft_wrap=True)


def show_end(view: JobView, *, as_json: bool) -> None:
    """How a followed job ended: the cause in full, what it brought, and one last line."""
    from tfy.cli import story

    if as_json:
        show_json(_view_data(view))
        return
    if view.cause is not None and "\n" in view.cause.strip():
        narrate(view.cause.rstrip())
    if view.report is not None:
        figures = story.tell_figures(view.report)
        if figures:
            make_console().print(make_pairs(figures))
    log = story.describe_log(view)
    if log is not None:
        narrate(f"`{log}` shows the log")
    show_text(story.describe_end(view))


def show_end_line(view: JobView, *, as_json: bool) -> None:
    """How a job ended, in one line."""
    from tfy.cli import story

    if as_json:
        show_json(_view_data(view))
    else:
        show_text(story.describe_end(view))


def show_jobs(rows: Sequence[JobRow], *, as_json: bool) -> None:
    """One line a job."""
    from tfy.cli.listing import make_columns

    if as_json:
        for row in rows:
            show_json(row)
    elif rows:
        headings, columns = zip(*make_columns(rows), strict=True)
        right = (headings.index("duration"),)
        make_console().print(make_table(headings, zip(*columns, strict=True), right=right))


def make_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> Table:
    """Columns under headings; `right` are the indexes of the columns with numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def make_pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    """Labels and their values, one pair a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")
    for label, value in pairs:
        table.add_row(Text(label, style="bold"), Text(value))
    return table


def make_tasks_table(tasks: Iterable[TaskRecord]) -> Table:
    """Each task: its state, where it is, what it has done and how it ended."""
    headings = ("task", "state", "host", "container", "time", "steps", "exit", "error")
    return make_table(headings, (_task_cells(record) for record in tasks), right=(4, 5, 6))


class LiveLine:
    """A line at the bottom of the terminal that is redrawn; nothing where standard error is no terminal."""

    def __init__(self) -> None:
        console = make_console(stderr=True)
        self.redraws = console.is_terminal and not console.is_dumb_terminal
        """Whether `update` shows anything."""
        self._spinner = Spinner("line")
        # What is written to standard error meanwhile appears above; standard output stays untouched.
        self._live = Live(self._spinner, console=console, transient=True, redirect_stdout=False)

    def __enter__(self) -> LiveLine:
        if self.redraws:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def update(self, text: str) -> None:
        """Show `text` in place of what the line said."""
        line: RenderableType = Text(text, no_wrap=True, overflow="ellipsis")
        self._spinner.update(text=line)


def _plan_pairs(plan: Plan, shared: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    pairs = [
        ("job", plan.name),
        ("program", shlex.join((plan.program, *plan.args))),
        ("strategy", plan.strategy),
        ("queue", plan.queue),
        ("user", plan.user),
        ("directory", plan.job_dir),
        ("python", plan.python),
    ]
    if plan.env:
        # Names only: a value may be a secret of who submits, by ${NAME}.
        pairs.append(("environment", ", ".join(name for name, _ in plan.env)))
    pairs += [("input path", path) for path in (plan.input.paths if plan.input else ())]
    pairs += shared
    if plan.checkpoint_dir is not None:
        pairs.append(("checkpoint", f"{plan.checkpoint_dir} (the newest {plan.checkpoint_keep} are kept)"))
        if plan.fresh:
            pairs.append(("", "what is in it is moved aside first"))
    if plan.export_dir is not None:
        pairs.append(("export", f"{plan.export_dir} (the newest {plan.export_keep} are kept)"))
    if plan.rdma != "off":
        pairs.append(("rdma", plan.rdma))
    start, total = format_duration(plan.start_timeout_s), format_duration(plan.total_timeout_s)
    pairs.append(("timeouts", f"start {start}, total {total}"))
    return pairs


def _plan_cells(row: PlanRow) -> tuple[str, ...]:
    memory, allocated = format_memory(row.memory_mib), format_memory(row.allocated_mib)
    return (
        row.container,
        str(row.count),
        memory,
        allocated,
        str(row.vcores),
        str(row.gpus or ""),
        row.node_label or "",
    )


def _task_cells(record: TaskRecord) -> tuple[str, ...]:
    took = format_duration(record.ended - record.started) if record.started and record.ended else ""
    return (
        record.task,
        record.state.value,
        record.host or "",
        record.container_id or "",
        took,
        str(record.progress.steps or ""),
        "" if record.exit_code is None else str(record.exit_code),
        (record.error or "").partition("\n")[0],
    )


def _view_data(view: JobView) -> dict[str, object]:
    """A job's view as JSON shows it: YARN's words under `application`, the driver's under `report`."""
    return {
        "application_id": view.application.id,
        "submission_id": view.submission_id,
        "name": view.application.name,
        "state": view.state,
        "cause": view.cause,
        "exit_status": view.exit_status if view.state.final else None,
        "job_dir": view.job_dir.root,
        "application": view.application,
        "report": view.report,
    }
