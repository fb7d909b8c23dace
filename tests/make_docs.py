"""`make docs`: what in the docs is made from the code, written anew."""

from __future__ import annotations

from pathlib import Path

from tfy.job_reference import insert_reference

PAGE = Path(__file__).parents[1] / "docs" / "job.md"


def main() -> None:
    """Writes the reference of job.yaml's keys into its page."""
    PAGE.write_text(insert_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
