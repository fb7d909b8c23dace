"""The plan of each example is what it was: `make docs` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.dry_runs import GOLDEN, golden_of, list_jobs, show


@pytest.mark.parametrize("job", list_jobs(), ids=lambda job: f"{job.parent.name}/{job.name}")
def test_the_plan_is_the_golden_one(job: Path) -> None:
    assert show(job) == golden_of(job).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {golden_of(job) for job in list_jobs()} == set(GOLDEN.glob("*"))
