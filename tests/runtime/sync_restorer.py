"""One worker under MultiWorkerMirroredStrategy that resumes from `model` below its working directory.

    python sync_restorer.py inside|outside|last WAIT_S

Inside of the strategy's scope or outside of it; `last` never restores. Waits for its standard input to
end. Prints what it restored, or why it did not.
"""

from __future__ import annotations

import sys

import tensorflow as tf

from tfy.errors import StartError
from tfy.runtime.checkpoints import restore_newest


def main(where: str, wait_s: float) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        made = tf.train.Checkpoint(v=tf.Variable(tf.zeros([100])))
        bare = tf.train.Checkpoint()
    if where == "last":
        sys.stdin.read()
        return
    try:
        if where == "inside":
            with strategy.scope():
                told = str(restore_newest(bare, "model", wait_s=wait_s))
        else:
            told = str(restore_newest(made, "model", wait_s=wait_s))
    except StartError as error:
        told = error.message
    sys.stdout.write(told.replace("\n", " ") + "\n")
    sys.stdout.flush()
    # Whoever leaves first takes the collective's other workers along.
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
