"""What `tfy submit --dry-run` shows of each example, on a cluster that is always the same."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

from tfy.cli import render
from tfy.load import load
from tfy.plan import SiteFacts, make_plan

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SITE = SiteFacts(
    default_fs="hdfs://namenode:8020",
    user="ada",
    python="/opt/tfy/bin/python",
    minimum_allocation_mib=1024,
    maximum_allocation_mib=8192,
    maximum_vcores=8,
    legacy_keras=True,
)


def list_jobs() -> list[Path]:
    """Every job of the examples."""
    return sorted((ROOT / "examples").glob("*/job*.yaml"))


def golden_of(job: Path) -> Path:
    """Where what is shown of a job is kept."""
    return GOLDEN / f"{job.parent.name}-{job.stem}.txt"


def show(job: Path) -> str:
    """The plan as a person sees it."""
    plan = make_plan(load(job, {}), SITE, "0b5c1d2e-0000-4000-8000-000000000000")
    with redirect_stdout(io.StringIO()) as shown:
        render.show_plan(plan, as_json=False)
    return "".join(f"{line.rstrip()}\n" for line in shown.getvalue().splitlines())
