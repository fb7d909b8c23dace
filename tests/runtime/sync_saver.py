"""One worker under MultiWorkerMirroredStrategy that resumes, trains, saves and exports.

    python sync_saver.py FOLDER RESULT.json STEPS

The model has a BatchNormalization, whose averages are put together from all workers when saved.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import tensorflow as tf

from tfy.runtime.checkpoints import make_checkpoint_manager, restore_newest
from tfy.runtime.export import export_model


def main(folder: str, result: str, steps: int) -> None:
    is_lead = json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        layers = [tf.keras.layers.Input([4]), tf.keras.layers.Dense(3), tf.keras.layers.BatchNormalization()]
        model = tf.keras.Sequential(layers)
        model.compile("adam", "mse")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    batch = (tf.random.normal([8, 4], seed=int(is_lead)), tf.ones([8, 3]))
    data = tf.data.Dataset.from_tensors(batch).repeat().with_options(options)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    manager = make_checkpoint_manager(checkpoint, f"{folder}/model", is_lead=is_lead, keep=2)
    seen = manager.latest_checkpoint
    restored = restore_newest(checkpoint, f"{folder}/model")
    begin = int(model.optimizer.iterations.numpy())
    for _ in range(steps):
        model.fit(data, steps_per_epoch=1, verbose=0)
        manager.save()
    exported = export_model(model, f"{folder}/export", is_lead=is_lead)
    told = {
        "seen": seen,
        "restored": restored,
        "begin": begin,
        "end": int(model.optimizer.iterations.numpy()),
        "exported": exported,
        "weights": [weight.tolist() for weight in model.get_weights()],
    }
    Path(result).write_text(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
