"""A job's directory on HDFS, drawn once.

/user/<user>/.tfy/<submission id>/     mode 0700
    job.yaml          as submitted
    plan.json         the resolved request
    application_id    YARN's id of the Skein application, once it exists
    files/            what the containers get
    private/          the job's own credentials
    status.json       the report while the job runs (written, then renamed)
    result.json       the report when it has ended

A container's log folder holds, beside what YARN, Skein and Spark write there:
    <type>-<index>.log      what the task's program wrote
    <type>-<index>.times    when that log had which size (tfy.runtime.log_clock)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

JOBS_FOLDER = ".tfy"

DRIVER_LOG = "application.driver.log"
"""The driver's log, by Skein's name for it, in the container of the application master."""

_PROGRAM_LOG = re.compile(r"([a-z]+)-(\d+)\.log", re.ASCII)


def program_log(task_type: str, index: int) -> str:
    """The file name of what a task's program wrote, in the log folder of its container."""
    return f"{task_type}-{index}.log"


def parse_program_log(name: str) -> tuple[str, int] | None:
    """The task type and index whose `program_log` is `name`; None for any other file."""
    found = _PROGRAM_LOG.fullmatch(name)
    return (found.group(1), int(found.group(2))) if found else None


def log_times(log: str) -> str:
    """The file name of a program log's clock."""
    return f"{log.removesuffix('.log')}.times"


def aside_of(checkpoint_dir: str, submission_id: str) -> str:
    """Where a fresh start puts what an earlier job left in `checkpoint_dir`: a folder beside it."""
    return f"{checkpoint_dir}-before-{submission_id[:8]}"


@dataclass(frozen=True, slots=True)
class JobDir:
    """The paths inside one job's directory; `root` is a full URI without a trailing slash."""

    root: str

    @classmethod
    def of(cls, default_fs: str, user: str, submission_id: str) -> JobDir:
        """The directory of one submission on the file system `default_fs` (as `hdfs://host:port`)."""
        return cls(f"{default_fs.rstrip('/')}/user/{user}/{JOBS_FOLDER}/{submission_id}")

    @property
    def index(self) -> str:
        """The folder beside all jobs' directories where the records of input files are remembered."""
        return f"{self.root.rpartition('/')[0]}/index"

    @property
    def file_system(self) -> str:
        """The file system that the directory is on, as `hdfs://host:port`."""
        scheme, _, rest = self.root.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}"

    @property
    def job_yaml(self) -> str:
        """job.yaml as submitted."""
        return f"{self.root}/job.yaml"

    @property
    def plan(self) -> str:
        """The resolved request."""
        return f"{self.root}/plan.json"

    @property
    def application_id(self) -> str:
        """YARN's application id, written once it exists."""
        return f"{self.root}/application_id"

    @property
    def status(self) -> str:
        """The job's report while it runs."""
        return f"{self.root}/status.json"

    @property
    def result(self) -> str:
        """The job's report when it has ended."""
        return f"{self.root}/result.json"

    @property
    def files(self) -> str:
        """The folder of what the containers get."""
        return f"{self.root}/files"

    @property
    def private(self) -> str:
        """The folder of the job's own credentials."""
        return f"{self.root}/private"

    @property
    def spark_staging(self) -> str:
        """Spark's staging folder (it adds `.sparkStaging/<application id>`)."""
        return f"{self.root}/spark"

    def file(self, name: str) -> str:
        """One file that containers get."""
        return f"{self.files}/{name}"

    def secret(self, name: str) -> str:
        """One file of the private folder."""
        return f"{self.private}/{name}"
