"""Write scikit-learn's handwritten digits as TFRecord files: 8 to learn from, 2 to test on.

    python prepare.py [--out hdfs:///data/digits]

1,797 images of 8 x 8 pixels, shuffled by a fixed seed. Each record is a tf.train.Example:
`image`, 64 floats from 0 to 16, and `label`, 0 to 9. Files that are there are written anew.
"""

import argparse
import os
import sys

import numpy as np
from sklearn.datasets import load_digits
from tfy.errors import TfyError
from tfy.runtime import filesystem
from tfy.yarn.hadoop import find_hadoop

SEED = 17
TRAIN_FILES = 8
TEST_FILES = 2
TEST_SHARE = 0.2


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="hdfs:///data/digits", help="a folder, on HDFS or local")
    return parser.parse_args()


def connect_hdfs():
    """Make hdfs:// known to TensorFlow, with the configuration of the Hadoop that `tfy` uses."""
    conf_dir = str(find_hadoop(os.environ).conf_dir)
    if os.environ.get("HADOOP_CONF_DIR") != conf_dir:
        # The configuration is read from this process's own environment: start again with it.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "HADOOP_CONF_DIR": conf_dir})
    filesystem.register()


def make_example(image, label):
    import tensorflow as tf

    features = {
        "image": tf.train.Feature(float_list=tf.train.FloatList(value=image)),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write_files(folder, images, labels, count):
    """Spread the images over `count` files in `folder`, after removing those that are there."""
    # Late, since it takes seconds to load and connect_hdfs may start this program again.
    import tensorflow as tf

    tf.io.gfile.makedirs(folder)
    for old in tf.io.gfile.glob(f"{folder}/*.tfrecord"):
        tf.io.gfile.remove(old)
    for number in range(count):
        with tf.io.TFRecordWriter(f"{folder}/digits-{number:02d}.tfrecord") as writer:
            for image, label in zip(images[number::count], labels[number::count], strict=True):
                writer.write(make_example(image, label))
    print(f"{folder}: {len(images)} images in {count} files")


def main():
    out = parse_args().out.rstrip("/")
    if out.startswith(("hdfs://", "viewfs://")):
        try:
            connect_hdfs()
        except TfyError as error:
            sys.exit("\n".join(text for text in (error.message, error.hint) if text))
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(images))
    test, train = np.split(order, [round(TEST_SHARE * len(order))])
    write_files(f"{out}/train", images[train], labels[train], TRAIN_FILES)
    write_files(f"{out}/test", images[test], labels[test], TEST_FILES)


if __name__ == "__main__":
    main()
