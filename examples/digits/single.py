"""Learn to read handwritten digits from the TFRecord files that prepare.py wrote."""

import argparse

import numpy as np
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
    parser.add_argument("--steps", type=int, default=200, help="batches an epoch")
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
    optimizer = tf.keras.optimizers.Adam(learning_rate)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def evaluate(model, files, batch):
    """The share of the images in `files` that the model reads right."""
    correct = []
    for images, labels in make_batches(tf.data.TFRecordDataset(files), batch):
        correct.extend(np.argmax(model(images), axis=1) == labels.numpy())
    return np.mean(correct)


def main():
    args = parse_args()

    def shuffled(records):
        return make_batches(records.shuffle(2000), args.batch)

    batches = iter(shuffled(tf.data.TFRecordDataset(tf.io.gfile.glob(args.train)).repeat()))
    model, optimizer = make_model(args.learning_rate)

    def learn(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    @tf.function
    def step(batches):
        return learn(*next(batches))

    steps = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, steps=steps)
    manager = tf.train.CheckpointManager(checkpoint, args.model_dir, max_to_keep=3)
    checkpoint.restore(manager.latest_checkpoint)
    for _ in range(args.epochs):
        losses = [step(batches) for _ in range(args.steps)]
        steps.assign_add(args.steps)
        path = manager.save()
        accuracy = evaluate(model, tf.io.gfile.glob(args.test), args.batch)
        count = int(steps.numpy())
        print(f"step {count}: loss {np.mean(losses):.4f}, test accuracy {accuracy:.4f}, saved {path}")


if __name__ == "__main__":
    main()
