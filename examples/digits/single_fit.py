"""Learn to read handwritten digits with Keras' fit, from the TFRecord files that prepare.py wrote."""

import argparse

import tensorflow as tf

PIXELS = 64
CLASSES = 10
FEATURES = {
    "image": tf.io.FixedLenFeature([PIXELS], tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", required=True, help="pattern of the TFRecord files to learn from")
    parser.add_argument("--test", required=True, help="pattern of the TFRecord files to test on")
    parser.add_argument("--model-dir", default="model", help="where checkpoints go")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="batches an epoch")
    parser.add_argument("--batch", type=int, default=64, help="images a batch")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    return parser.parse_args()


def make_batches(records, batch):
    """From serialized examples to batches of pixels (0 to 1) and labels."""
    examples = records.batch(batch).map(lambda serialized: tf.io.parse_example(serialized, FEATURES))
    return examples.map(lambda example: (example["image"] / 16.0, example["label"]))


def make_model(learning_rate):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input([PIXELS]),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(CLASSES),
        ]
    )
    model.compile(
        optimizer=tf.keras.optimizers.Adam(learning_rate),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def main():
    args = parse_args()

    def shuffled(records):
        return make_batches(records.shuffle(2000), args.batch)

    batches = shuffled(tf.data.TFRecordDataset(tf.io.gfile.glob(args.train)).repeat())
    test = make_batches(tf.data.TFRecordDataset(tf.io.gfile.glob(args.test)), args.batch)
    model = make_model(args.learning_rate)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    manager = tf.train.CheckpointManager(checkpoint, args.model_dir, max_to_keep=3)
    checkpoint.restore(manager.latest_checkpoint)

    def save(epoch, logs):
        path = manager.save()
        step = int(model.optimizer.iterations.numpy())
        print(f"step {step}: {logs}, saved {path}")

    callbacks = [tf.keras.callbacks.LambdaCallback(on_epoch_end=save)]
    fit = {"epochs": args.epochs, "steps_per_epoch": args.steps, "verbose": 0}
    model.fit(batches, validation_data=test, callbacks=callbacks, **fit)


if __name__ == "__main__":
    main()
