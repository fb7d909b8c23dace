"""What the submit side and the cluster side agree upon: names, and how records travel.

Names of environment variables, of keys in the rendezvous, and of files in a container and in a
job's directory. The records themselves are `tfy.plan_model` and `tfy.records`.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from tfy.errors import InternalError

# --- environment variables of every task ------------------------------------------------------
ENV_PLAN = "TFY_PLAN"
ENV_REPORT = "TFY_REPORT"
ENV_NODE_PID = "TFY_NODE_PID"
ENV_INPUT = "TFY_INPUT"
ENV_DONE = "TFY_DONE"
ENV_TASK_TYPE = "TFY_TASK_TYPE"
ENV_TASK_INDEX = "TFY_TASK_INDEX"
ENV_JOB_NAME = "TFY_JOB_NAME"
ENV_SUBMISSION_ID = "TFY_SUBMISSION_ID"
ENV_CHECKPOINT_DIR = "TFY_CHECKPOINT_DIR"
ENV_EXPORT_DIR = "TFY_EXPORT_DIR"
ENV_TF_CONFIG = "TF_CONFIG"
# In Spark's executors: for find_gpus.sh.
ENV_GPUS = "TFY_GPUS"

# --- names in a container's working directory -------------------------------------------------
LOCAL_CODE = "tfy_code"
LOCAL_PROGRAM = "program"
LOCAL_HADOOP_CONF = "hadoop_conf"
LOCAL_PLAN = "plan.json"
LOCAL_INPUT = "input.json"
LOCAL_DONE = "training_done"
LOCAL_CERTIFICATE = ".skein.crt"
LOCAL_KEY = ".skein.pem"

# --- names in the private folder of a job's directory -----------------------------------------
SECRET_CERTIFICATE = "skein.crt"
SECRET_KEY = "skein.pem"

# --- tags of the two applications: YARN lowercases them ---------------------------------------
TAG_ALL = "tfy"


def submission_tag(submission_id: str) -> str:
    """The tag that both applications of a job carry."""
    return f"tfy:{submission_id}"


def submission_of_tags(tags: tuple[str, ...]) -> str | None:
    """The submission id among an application's tags, or None where tfy did not submit it."""
    for tag in tags:
        head, colon, submission_id = tag.partition(":")
        if head == TAG_ALL and colon and submission_id:
            return submission_id
    return None


# --- keys in the rendezvous (current state only) ----------------------------------------------
KEY_CLUSTER = "cluster"
KEY_STOP = "stop"
PREFIX_TASK = "task/"


def task_key(name: str) -> str:
    """The key that holds the record of the task `name` (as `worker:3`)."""
    return f"{PREFIX_TASK}{name}"


def task_name(task_type: str, index: int) -> str:
    """How a task is called everywhere: type, colon, index."""
    return f"{task_type}:{index}"


def type_of_task(name: str) -> str:
    """The type in a task's name: `worker` of `worker:3`."""
    return name.partition(":")[0]


# Outside the cluster spec: TensorFlow would wait for them (tf-yarn 53421d2, TonY#506).
SIDE_TASKS = ("evaluator", "tensorboard")


T = TypeVar("T")


def to_json(record: object) -> bytes:
    """Any record of this module as JSON."""
    return msgspec.json.encode(record)


def from_json(data: bytes, record_type: type[T]) -> T:
    """A record from JSON; `InternalError` where the other side wrote something else."""
    try:
        return msgspec.json.decode(data, type=record_type)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise InternalError(f"not a {record_type.__name__}: {error}") from error
