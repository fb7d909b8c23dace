"""The keys of job.yaml, the one definition: names, defaults, limits, and what each means.

`tfy.load` reads by these tables; the reference in docs/job.md and `tfy init` are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tfy.task_keys import TASK_KEYS, Key, Keys

DEFAULT_QUEUE = "default"
DEFAULT_START_TIMEOUT_S = 10 * 60
DEFAULT_TOTAL_TIMEOUT_S = 24 * 3600
DEFAULT_EVALUATE_TIMEOUT_S = 10 * 60
DEFAULT_CHECKPOINT_KEEP = 3
DEFAULT_EXPORT_KEEP = 3
DEFAULT_SEED = 0
LATER_INPUT_MODES = ("spark",)

JOB_KEYS: Mapping[str, Keys] = MappingProxyType(
    {
        "": Keys(
            entries=(
                Key(
                    name="name",
                    default="required",
                    example="digits",
                    text="the job's name: letters, digits, `-`, `_`, `.`; every verb finds a job by it",
                ),
                Key(
                    name="program",
                    default="required",
                    example="train.py",
                    text="the Python program, relative to job.yaml and within its folder; unchanged or "
                    "with `tfy.runtime`",
                ),
                Key(name="args", default="[]", example='["--epochs", "3"]', text="its arguments, as text"),
                Key(
                    name="files",
                    default="[]",
                    example="[lib/, vocabulary.txt]",
                    text="files and folders that stand beside the program in its working directory, "
                    "relative to job.yaml",
                ),
                Key(
                    name="python_env",
                    default="local",
                    example="local",
                    text="`local`: the Python that runs `tfy`, at the same path on every host",
                ),
                Key(
                    name="queue",
                    default=DEFAULT_QUEUE,
                    example=DEFAULT_QUEUE,
                    text="YARN's queue, for both applications of the job",
                ),
                Key(
                    name="strategy",
                    default="parameter_server",
                    example="parameter_server",
                    text="`parameter_server`: asynchronous, the program runs on the chief, workers and "
                    "ps run TensorFlow's server. `multi_worker_mirrored`: synchronous, the program "
                    "runs on every worker, worker:0 leads. `none`: the program runs on every task "
                    "with TF_CONFIG and does as it likes",
                ),
                Key(
                    name="tasks", default="required", text="the tasks of the program by type, and the driver"
                ),
                Key(
                    name="rdma",
                    default="off",
                    example="preferred",
                    text="`off`, `preferred` or `required`: GPU collectives over InfiniBand or RoCE "
                    "(docs/gpus.md)",
                ),
                Key(name="input", default="none", text="the TFRecord files that the tasks read"),
                Key(name="checkpoint", default="none", text="where checkpoints go"),
                Key(name="export", default="none", text="where `job.export` puts models to serve"),
                Key(name="timeouts", default="see below", text="no wait is without a limit"),
                Key(
                    name="env",
                    default="{}",
                    example='{MY_FLAG: "1"}',
                    text="environment variables of the tasks, as text; those that tfy sets itself are "
                    "refused",
                ),
            ),
            later=("module", "tensorboard", "rounds", "spark"),
        ),
        **TASK_KEYS,
        "input": Keys(
            entries=(
                Key(
                    name="mode",
                    default="tensorflow",
                    example="tensorflow",
                    text="InputMode.TENSORFLOW: the tasks read the files themselves",
                ),
                Key(
                    name="paths",
                    default="required",
                    example='["hdfs:///data/digits/train/*.tfrecord"]',
                    text="files, folders or patterns on `hdfs://` or `viewfs://`, listed once when the "
                    "job is submitted; names that begin with `_` or `.` or end in `.crc` do not "
                    "count",
                ),
                Key(
                    name="shard",
                    default="auto",
                    example="auto",
                    text="how files are shared out: `file` (whole files, by their bytes), `record` "
                    "(ranges of records), `auto` (whole files where there are enough)",
                ),
                Key(
                    name="unequal",
                    default="repeat",
                    example="repeat",
                    text="where tasks would get unequal numbers of batches: `repeat` the data without "
                    "end, `drop` the surplus of each epoch, `refuse` to train; the last two count "
                    "the records first",
                ),
                Key(
                    name="seed",
                    default=str(DEFAULT_SEED),
                    example="0",
                    text="the order of a task's files changes with each epoch, by this number",
                ),
            )
        ),
        "checkpoint": Keys(
            entries=(
                Key(
                    name="dir",
                    default="required",
                    example='"hdfs:///models/digits"',
                    text="where the program checkpoints, `hdfs://` or `viewfs://`; a later submit "
                    "resumes from the newest complete one there, with `--fresh` it starts over",
                ),
                Key(
                    name="keep",
                    default=str(DEFAULT_CHECKPOINT_KEEP),
                    example="3",
                    text="how many checkpoints are kept",
                ),
            )
        ),
        "export": Keys(
            entries=(
                Key(
                    name="dir",
                    default="required",
                    example='"hdfs:///serving/digits"',
                    text="where `job.export(model)` puts SavedModels by version number; outside "
                    "checkpoint.dir",
                ),
                Key(
                    name="keep",
                    default=str(DEFAULT_EXPORT_KEEP),
                    example="3",
                    text="how many versions are kept",
                ),
            )
        ),
        "timeouts": Keys(
            entries=(
                Key(
                    name="start",
                    default="10 min",
                    example="10 min",
                    text="from the driver's start until every task has registered; what is not complete "
                    "by then is released whole. Waiting in the queue for the driver itself does "
                    "not count",
                ),
                Key(name="total", default="24 h", example="6 h", text="until the job has ended"),
                Key(
                    name="evaluate",
                    default="10 min",
                    example="10 min",
                    text="how long the evaluator may take for the last checkpoint, once training has ended",
                ),
            )
        ),
    }
)
"""Key path of a mapping → its keys. `env` is not here: its keys are the user's."""

# Set by YARN, Skein or tfy in every container: a job that could change them would break itself.
OWNED_ENV_NAMES = (
    "CONTAINER_ID",
    "GRPC_ENABLE_FORK_SUPPORT",
    "HADOOP_CONF_DIR",
    "HADOOP_TOKEN_FILE_LOCATION",
    "HOME",
    "PYTHONPATH",
    "TF_CONFIG",
    "TF_GRPC_REUSE_PORT",
)
OWNED_ENV_PREFIXES = ("TFY_", "SKEIN_")
