"""`make docs`: what is made from the code, in the docs and beside the tests, written anew."""

from __future__ import annotations

from pathlib import Path

from tests.examples.dry_runs import golden_of, list_jobs, show
from tfy.job_reference import insert_reference

PAGE = Path(__file__).parents[1] / "docs" / "job.md"


def main() -> None:
    """Writes the reference of job.yaml's keys into its page, and the plans of the examples."""
    PAGE.write_text(insert_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for job in list_jobs():
        golden_of(job).parent.mkdir(exist_ok=True)
        golden_of(job).write_text(show(job), encoding="utf-8")


if __name__ == "__main__":
    main()
