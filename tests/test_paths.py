"""The names of files that one process gives and another finds."""

from __future__ import annotations

import pytest

from tfy.paths import log_times, parse_program_log, program_log


@pytest.mark.parametrize("task", [("worker", 0), ("ps", 12), ("tensorboard", 1)])
def test_a_programs_log_tells_its_task(task: tuple[str, int]) -> None:
    assert parse_program_log(program_log(*task)) == task


@pytest.mark.parametrize("name", ["stderr", "application.driver.log", "worker-.log", "worker-1.log.1"])
def test_other_files_are_no_programs_log(name: str) -> None:
    assert parse_program_log(name) is None
    assert parse_program_log(log_times(program_log("worker", 1))) is None
