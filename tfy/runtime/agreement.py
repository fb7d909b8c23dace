"""Whether all mirrored workers restored the same checkpoint.

Each chooses for itself, by what it could read. A worker whose read failed would go on from an older
checkpoint, and the replicas train from different weights without a word.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from tfy.errors import StartError

if TYPE_CHECKING:
    import tensorflow as tf

_LOG = logging.getLogger("tfy")


def check_agreement(checkpoint: tf.train.Checkpoint, restored: str | None, wait_s: float) -> None:
    """Compares what this worker restored with all others', under MultiWorkerMirroredStrategy.

    All workers must call it; each waits up to `wait_s` seconds for the others. Raises StartError where
    they restored different checkpoints, or some did not come to tell. Does nothing under other strategies.
    """
    import tensorflow as tf

    strategy = _find_strategy(checkpoint)
    if strategy is None or strategy.num_replicas_in_sync == 1:
        return
    own = _digest(restored)
    try:
        found = _tell_all(strategy, own, wait_s)
    # A worker that ends, or waits in another collective, is seen as one of several errors.
    except tf.errors.OpError as error:
        raise StartError(
            f"the workers could not compare which checkpoints they restored: {error.message}",
            hint="every worker has to restore, and all in the same order",
        ) from error
    others = [str(replica) for replica, each in enumerate(found) if each != own]
    if others:
        raise StartError(
            f"the workers restored different checkpoints: this one {restored or 'none'}, "
            f"and another one or none in replica {', '.join(others)}",
            hint="their logs say why a checkpoint was passed over; run the job again",
        )


def _find_strategy(checkpoint: tf.train.Checkpoint) -> tf.distribute.MultiWorkerMirroredStrategy | None:
    """The mirrored strategy in whose scope this is called, or else the variables were made."""
    import tensorflow as tf

    parts = tf.train.TrackableView(checkpoint).descendants()
    # A variable of Keras 3 holds TensorFlow's own.
    variables = (getattr(part, "_value", part) for part in parts)
    made_by = (getattr(variable, "distribute_strategy", None) for variable in variables)
    for strategy in (tf.distribute.get_strategy(), *made_by):
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return strategy
    return None


def _tell_all(strategy: tf.distribute.MultiWorkerMirroredStrategy, own: int, wait_s: float) -> list[int]:
    """The numbers of all replicas in order, a worker's own being `own`."""
    import tensorflow as tf

    count = strategy.num_replicas_in_sync
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=wait_s)

    @tf.function  # type: ignore[untyped-decorator]
    def gather() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        # A sum in which each replica has a place of its own: the way that gradients go.
        place = tf.one_hot(
            context.replica_id_in_sync_group, count, tf.constant(own, tf.int64), tf.constant(0, tf.int64)
        )
        return context.all_reduce(tf.distribute.ReduceOp.SUM, place, options)

    found = strategy.experimental_local_results(strategy.run(gather))[0]
    return [int(each) for each in found.numpy()]


def _digest(restored: str | None) -> int:
    """Of a checkpoint's prefix, 0 for none."""
    if restored is None:
        return 0
    return int.from_bytes(hashlib.sha256(restored.encode()).digest()[:7], "big")
