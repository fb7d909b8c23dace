"""The input inside TensorFlow: a dataset graph in which each task reads its own share.

The same graph serves every strategy. Under parameter_server it is made once, on the chief, and runs on
every worker, so a share cannot be chosen when the graph is made: the graph holds the shares of all tasks
and asks for its task's index where it runs, through the plugin's `tfy://` doors (tfy.runtime.filesystem).
Through them it also asks for the number of its epoch, reads exactly the records of each split, which the
plugin counts, and counts the batches that are drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfy.contract import task_name
from tfy.errors import InternalError, SpecError
from tfy.shares import InputShares

Pipeline = Callable[[tf.data.Dataset], tf.data.Dataset]

_INDEX_DOOR = "tfy://task/index?"
_EPOCH_DOOR = "tfy://epoch"
_RECORDS_DOOR = "tfy://records"
# A set of its own, whose epochs are the numbers of the others.
_SET_NUMBERS = 1 << 63
_STEPS_DOOR = "tfy://count/steps"


def check_task(shares: InputShares, task_type: str, strategy: str) -> None:
    """Raises SpecError where tasks of this type have no share of the input.

    Under parameter_server the chief has none, but makes the graph for the workers.
    """
    makes_it_for_others = strategy == "parameter_server" and task_type == "chief"
    if task_type != shares.task_type and not makes_it_for_others:
        raise SpecError(
            f"job.dataset(): a task of type {task_type} has no share of the input: "
            f"it is shared among the {len(shares.shares)} tasks of type {shares.task_type}",
            hint="read what this task needs by itself, from job.input_paths",
        )


def next_set_number() -> int:
    """A number that no other dataset of this process has or gets."""
    with tf.io.gfile.GFile(f"{_EPOCH_DOOR}/{_SET_NUMBERS}", "r") as door:
        return int(door.read())


def make_dataset(
    shares: InputShares, pipeline: Pipeline, *, set_number: int, seed: int = 0
) -> tf.data.Dataset:
    """The dataset of batches that `pipeline` makes of the records of the task where it runs.

    `pipeline` gets a dataset of serialized records (scalar tf.string, the content of one TFRecord) and
    returns one of batches, of any structure. The order of a task's splits changes from epoch to epoch by
    `seed`. Each element counts as a step when it is drawn. `set_number` tells the datasets of one process
    apart.

    With `unequal: repeat` epoch follows epoch without end. With `drop` and `refuse` the dataset is one
    epoch each time it is iterated, with the same number of batches on every task.

    Raises SpecError, on every task alike, where equal numbers of batches are impossible. Where a share turns
    out to hold no record, drawing the first batch raises InvalidArgumentError, which names the task.
    """
    epoch = _make_epoch(shares, set_number, seed)
    if shares.unequal == "repeat":
        return _finish(pipeline(epoch.repeat().concatenate(_make_refusal(shares))))
    count = _equal_batches(shares, pipeline)
    batches = pipeline(epoch).take(count)
    # The promise that is kept for collectives: fewer are an error here, not a hang there.
    return _finish(batches.apply(tf.data.experimental.assert_cardinality(count)))


def _make_epoch(shares: InputShares, set_number: int, seed: int) -> tf.data.Dataset:
    """All records of the share of the task where it runs, once; another epoch whenever it is iterated."""
    ends = [0]
    names = []
    for splits in shares.shares:
        names += [
            f"/{len(splits)}/{split.start}-{split.end}/{shares.files[split.file].path}" for split in splits
        ]
        ends.append(len(names))

    def read_epoch(token: tf.Tensor) -> tf.data.Dataset:
        index = _task_index(token)
        number = tf.io.read_file(_asked(f"{_EPOCH_DOOR}/{set_number}?", token))
        own = tf.constant(names, tf.string)[tf.gather(ends, index) : tf.gather(ends, index + 1)]
        epoch = tf.strings.to_number(number, tf.int64)
        order = tf.random.experimental.stateless_shuffle(own, [tf.constant(seed, tf.int64), epoch])
        return tf.data.TFRecordDataset(tf.strings.join([f"{_RECORDS_DOOR}/{set_number}/", number, order]))

    return tf.data.Dataset.range(1).flat_map(read_epoch)


def _asked(door: str, token: tf.Tensor) -> tf.Tensor:
    """A door's name that only a running graph knows.

    `token` (scalar int64) must come from a dataset's element: reading a constant name would be folded
    into a constant where the graph is made.
    """
    return tf.strings.join([door, tf.strings.as_string(token)])


def _task_index(token: tf.Tensor) -> tf.Tensor:
    """The index (int64) of the task in whose process this runs."""
    return tf.strings.to_number(tf.io.read_file(_asked(_INDEX_DOOR, token)), tf.int64)


def _make_refusal(shares: InputShares) -> tf.data.Dataset:
    """What follows an endless repetition is reached only where there is nothing to repeat."""
    reason = (
        f" has no record to read: {len(shares.files)} files among {len(shares.shares)} tasks hold too few"
    )

    def refuse(token: tf.Tensor) -> tf.Tensor:
        task = tf.strings.join([f"{shares.task_type}:", tf.strings.as_string(_task_index(token))])
        with tf.control_dependencies([tf.debugging.Assert(token < 0, [tf.strings.join([task, reason])])]):
            return tf.identity(task)

    return tf.data.Dataset.range(1).map(refuse)


def _equal_batches(shares: InputShares, pipeline: Pipeline) -> int:
    """How many batches each task draws in an epoch: what the smallest share makes.

    Every task computes it from the same numbers, so either all go on or all are refused.
    """
    records = shares.records_of_tasks()
    if records is None:
        raise InternalError(f"unequal: {shares.unequal}: the records of the input were not counted")
    low, high = min(records), max(records)
    fewest, most = (_count_batches(shares.unequal, pipeline, number) for number in (low, high))
    told = "; ".join(
        f"{task_name(shares.task_type, records.index(number))} makes {batches:,} of {number:,} records"
        for number, batches in {low: fewest, high: most}.items()
    )
    if shares.unequal == "refuse" and fewest != most:
        raise SpecError(
            f"input.unequal: refuse: the tasks would draw unequal numbers of batches: {told}",
            hint="`unequal: drop` leaves out the rest, `unequal: repeat` never ends",
        )
    if not fewest:
        raise SpecError(
            f"input.unequal: {shares.unequal} leaves no batch to draw: {told}",
            hint="make smaller batches, or keep the remainder",
        )
    return fewest


def _count_batches(unequal: str, pipeline: Pipeline, records: int) -> int:
    """How many elements `pipeline` makes of so many records, as tf.data knows it."""
    stand_in = tf.data.Dataset.from_tensors(tf.constant("", tf.string)).repeat(records)
    count = int(pipeline(stand_in).cardinality())
    if count == tf.data.INFINITE_CARDINALITY:
        raise SpecError(
            f"input.unequal: {unequal} needs a pipeline that ends, the one given to job.dataset repeats",
            hint="leave out .repeat(): the dataset is another epoch each time it is iterated",
        )
    if count == tf.data.UNKNOWN_CARDINALITY:
        raise SpecError(
            f"input.unequal: {unequal} must know how many batches the pipeline given to job.dataset makes, "
            "and tf.data cannot tell: a step such as filter, flat_map or unbatch makes it depend on the data",
            hint="use `unequal: repeat` and count steps in the program",
        )
    return count


def _finish(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Adds 1 to this process's `steps` whenever an element is drawn; each task's data is its own.

    WriteFile is stateful, so no optimisation drops it. Nothing may read ahead behind it: the
    pipeline's own prefetch comes before.
    """
    one_argument = not isinstance(batches.element_spec, tuple)

    def count(*element: object) -> object:
        tf.io.write_file(_STEPS_DOOR, "1")
        return element[0] if one_argument else element

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    # The records are shared out already: a strategy that shards again would lose some.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return batches.map(count).with_options(options)
