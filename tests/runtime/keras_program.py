"""One process of a small cluster that trains a Keras model in two ways, and writes down what worked.

    python keras_program.py RESULT.json

Under TF_CONFIG with a chief it trains by ParameterServerStrategy (and serves on the other tasks), else by
MultiWorkerMirroredStrategy, each worker on other data. The result has "ok", or the error, for a loop of
its own and for `fit`, and the weights that the loop came to.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

STEPS = 2
BATCH = 8


def make_model() -> Any:
    model = tf.keras.Sequential([tf.keras.layers.Input([4]), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    return model


def make_data() -> Any:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    own = json.loads(os.environ["TF_CONFIG"])["task"]["index"] + 1.0
    batch = (own * tf.ones([BATCH, 4]), tf.ones([BATCH, 1]))
    return tf.data.Dataset.from_tensors(batch).repeat().with_options(options)


def make_step(strategy: Any, model: Any) -> Any:
    def learn(batch: Any) -> Any:
        features, labels = batch
        with tf.GradientTape() as tape:
            losses = tf.reduce_mean(tf.square(model(features, training=True) - labels), axis=1)
            loss = tf.reduce_sum(losses) / BATCH
        variables = model.trainable_variables
        model.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    @tf.function  # type: ignore[untyped-decorator]
    def step(batches: Any) -> Any:
        return strategy.run(learn, args=(next(batches),))

    return step


def run_loop(strategy: Any, coordinator: Any) -> list[float]:
    with strategy.scope():
        model = make_model()
        model.optimizer.build(model.trainable_variables)
    before = float(tf.reduce_sum(model.get_weights()[0]))
    step = make_step(strategy, model)
    if coordinator is None:
        batches = iter(strategy.experimental_distribute_dataset(make_data()))
        for _ in range(STEPS):
            step(batches)
    else:
        # Keras 3's optimizer looks for the strategy that is the default one.
        tf.distribute.experimental_set_strategy(strategy)
        batches = iter(coordinator.create_per_worker_dataset(make_data()))
        for _ in range(STEPS):
            coordinator.schedule(step, args=(batches,))
        coordinator.join()
    assert float(tf.reduce_sum(model.get_weights()[0])) != before
    return [float(weight) for weight in model.get_weights()[0].flatten()]


def run_fit(strategy: Any, _coordinator: Any) -> list[float]:
    with strategy.scope():
        model = make_model()
    history = model.fit(make_data(), epochs=1, steps_per_epoch=STEPS, verbose=0)
    assert history.history["loss"][0] >= 0
    return []


def attempt(
    run: Callable[[Any, Any], list[float]], strategy: Any, coordinator: Any
) -> tuple[str, list[float]]:
    try:
        weights = run(strategy, coordinator)
    except Exception as error:  # noqa: BLE001 - whatever it is, is the finding
        return f"{type(error).__name__}: {error}"[:300], []
    return "ok", weights


def main() -> None:
    config = json.loads(os.environ["TF_CONFIG"])
    coordinator = None
    if "chief" not in config["cluster"]:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    elif config["task"]["type"] == "chief":
        strategy = tf.distribute.ParameterServerStrategy(
            tf.distribute.cluster_resolver.TFConfigClusterResolver()
        )
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    else:
        spec = tf.train.ClusterSpec(config["cluster"])
        task = config["task"]
        tf.distribute.Server(spec, job_name=task["type"], task_index=task["index"]).join()
        return
    loop, weights = attempt(run_loop, strategy, coordinator)
    fit, _ = attempt(run_fit, strategy, coordinator)
    result = {"loop": loop, "fit": fit, "weights": weights}
    Path(sys.argv[1]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
