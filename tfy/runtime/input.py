"""The workers' input under a parameter-server strategy: each reads a share of its own.

The dataset's graph is made once, on the chief, and the same graph runs on every worker. So a
share cannot be decided when the graph is made: the graph asks for its worker's index where it
runs, through the plugin's `tfy://` door (tfy.runtime.filesystem), and counts the batches that
are drawn there through the same door. The dataset never ends: a finite one would raise
OutOfRange on the quickest worker and stop the whole training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

from tfy.errors import SpecError

_INDEX_DOOR = "tfy://task/index?"
_STEPS_DOOR = "tfy://count/steps"
_HIDDEN = ("_", ".")  # Hadoop's own rule: _SUCCESS, _temporary, .part-0.crc, .staging
_LISTING_THREADS = 16


def list_files(paths: Sequence[str]) -> tuple[str, ...]:
    """The data files under `paths` (files, directories, glob patterns), sorted, each once.

    Directories give all files below them. Names that begin with `_` or `.` or end in `.crc` are
    left out, as Hadoop does. Raises SpecError, naming the path, where one matches no data file.
    """
    found: set[str] = set()
    for path in paths:
        files = _match(path)
        if not files:
            raise SpecError(
                f"input.paths: {path!r} matches no data file",
                hint="names that begin with _ or . or end in .crc do not count",
            )
        found.update(files)
    return tuple(sorted(found))


def _match(path: str) -> list[str]:
    matches = [match.rstrip("/") for match in tf.io.gfile.glob(path) if _is_data(match)]
    # One round trip to the NameNode each: side by side.
    with ThreadPoolExecutor(_LISTING_THREADS) as pool:
        is_directory = list(pool.map(tf.io.gfile.isdir, matches))
    files: list[str] = []
    for match, directory in zip(matches, is_directory, strict=True):
        files.extend(_walk(match) if directory else [match])
    return files


def _walk(directory: str) -> Iterable[str]:
    for folder, subfolders, names in tf.io.gfile.walk(directory):
        subfolders[:] = [name for name in subfolders if _is_data(name)]
        yield from (f"{folder.rstrip('/')}/{name}" for name in names if _is_data(name))


def _is_data(path: str) -> bool:
    name = path.rstrip("/").rpartition("/")[2]
    return not name.startswith(_HIDDEN) and not name.endswith(".crc")


def make_dataset(
    input_paths: Sequence[str],
    pipeline: Callable[[tf.data.Dataset], tf.data.Dataset],
    workers: int,
    *,
    seed: int = 0,
) -> tf.data.Dataset:
    """The dataset for `ClusterCoordinator.create_per_worker_dataset`; it never ends.

    Files are listed here, once. With at least as many files as `workers` each worker gets whole
    files, in an order that changes from one pass to the next (by `seed`); with fewer, each reads
    all files and keeps every `workers`-th record. Either way no record belongs to two workers.

    `pipeline` gets the worker's records (scalar tf.string, the content of one TFRecord) and returns a
    dataset of batches, of any structure. What is returned counts each element as it is drawn.

    Raises SpecError where a path matches nothing. A worker whose share has no record raises
    InvalidArgumentError when its first batch is drawn.
    """
    files = list_files(input_paths)
    share = (
        _share_of_files(files, workers, seed)
        if len(files) >= workers
        else _share_of_records(files, workers, seed)
    )
    records = share.repeat().concatenate(_refusal(len(files), workers))
    return _counted(pipeline(records))


def _task_index(token: tf.Tensor) -> tf.Tensor:
    """The index (int64) of the worker in whose process this runs.

    `token` (scalar int64) must come from a dataset's element: reading a constant name would
    be folded into a constant on the chief.
    """
    text = tf.io.read_file(tf.strings.join([_INDEX_DOOR, tf.strings.as_string(token)]))
    return tf.strings.to_number(text, tf.int64)


def _share_of_files(files: Sequence[str], workers: int, seed: int) -> tf.data.Dataset:
    """Records of every `workers`-th file: one large sequential read after another."""
    names = tf.data.Dataset.range(1).flat_map(
        lambda token: tf.data.Dataset.from_tensor_slices(list(files)).shard(workers, _task_index(token))
    )
    return _shuffled(names, len(files), seed).flat_map(tf.data.TFRecordDataset)


def _share_of_records(files: Sequence[str], workers: int, seed: int) -> tf.data.Dataset:
    """Every `workers`-th record of each file; files begin at different workers."""
    spread = -(-workers // len(files))

    def read_share(number: tf.Tensor, name: tf.Tensor) -> tf.data.Dataset:
        first = tf.math.floormod(_task_index(number) - number * spread, workers)
        return tf.data.TFRecordDataset(name).shard(workers, first)

    names = tf.data.Dataset.from_tensor_slices(list(files)).enumerate()
    return _shuffled(names, len(files), seed).flat_map(read_share)


def _shuffled(names: tf.data.Dataset, count: int, seed: int) -> tf.data.Dataset:
    return names.shuffle(count, seed=seed, reshuffle_each_iteration=True)


def _refusal(files: int, workers: int) -> tf.data.Dataset:
    """What follows an endless repetition is reached only where there is nothing to repeat."""
    reason = f" has no record to read: {files} files among {workers} workers hold too few records"

    def refuse(token: tf.Tensor) -> tf.Tensor:
        task = tf.strings.join(["worker:", tf.strings.as_string(_task_index(token))])
        with tf.control_dependencies([tf.debugging.Assert(token < 0, [tf.strings.join([task, reason])])]):
            return tf.identity(task)

    return tf.data.Dataset.range(1).map(refuse)


def _counted(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Adds 1 to this process's `steps` whenever an element is drawn.

    WriteFile is stateful, so no optimisation drops it. Nothing may read ahead behind it: the
    pipeline's own prefetch comes before.
    """
    one_argument = not isinstance(batches.element_spec, tuple)

    def count(*element: object) -> object:
        tf.io.write_file(_STEPS_DOOR, "1")
        return element[0] if one_argument else element

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return batches.map(count).with_options(options)
