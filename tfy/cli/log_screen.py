"""How lines of logs look: alone as they are, of several tasks with a prefix, or as JSON."""

from __future__ import annotations

from tfy.cli import render
from tfy.yarn.logs_model import LogLine, LogRequest, select_tasks, task_of_program_log


class LogScreen:
    """Shows the lines that a request gives, on standard output."""

    def __init__(self, request: LogRequest, *, as_json: bool) -> None:
        self._request = request
        self._as_json = as_json
        self._prefixes = True
        self._draws = request.follow and not as_json and render.is_terminal()
        self._drawn = ""

    def begin(self, task_names: tuple[str, ...]) -> None:
        """Hears of the job's tasks: one alone needs no prefix."""
        request = self._request
        one = len(select_tasks(task_names, request.tasks)) == 1
        self._prefixes = request.driver or request.system or not one

    def show(self, line: LogLine) -> None:
        """One line, at once."""
        self.draw("")
        if self._as_json:
            render.show_json(line)
        else:
            render.show_text(describe_origin(line) + line.line if self._prefixes else line.line)

    def narrate(self, text: str) -> None:
        """What is waited for, on standard error."""
        self.draw("")
        render.narrate(text)

    def draw(self, text: str) -> None:
        """The progress bars that are being drawn now, below the last line of a terminal."""
        if self._draws and text != self._drawn:
            render.redraw(text)
            self._drawn = text


def describe_origin(line: LogLine) -> str:
    """The prefix of a line: its task, and the file where that is not its program's log."""
    source = "" if task_of_program_log(line.source) or line.task == "driver" else f" {line.source}"
    return f"{line.task}{source} | "
