"""A chief with two ps and a worker in one process: a variable partitioned over both ps, saved and exported.

python partitioned_saver.py FOLDER
"""

from __future__ import annotations

import sys

import tensorflow as tf

from tests.runtime.sync_ports import free_addresses
from tfy.runtime.checkpoints import make_checkpoint_manager, restore_newest
from tfy.runtime.export import export_model


def main(folder: str) -> None:
    ps0, ps1, worker = free_addresses(3)
    spec = tf.train.ClusterSpec({"ps": [ps0, ps1], "worker": [worker]})
    tasks = (("ps", 0), ("ps", 1), ("worker", 0))
    servers = [
        tf.distribute.Server(spec, job_name=name, task_index=index, protocol="grpc") for name, index in tasks
    ]
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc"),
        variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2),
    )
    with strategy.scope():
        variable = tf.Variable(tf.zeros([100, 4]))
    assert len(variable.variables) == len(servers) - 1
    checkpoint = tf.train.Checkpoint(v=variable)
    manager = make_checkpoint_manager(checkpoint, f"{folder}/model", is_lead=True, keep=None)
    for value in (1.0, 2.0, 3.0):
        variable.assign(tf.fill([100, 4], value))
        manager.save()
    last = sorted(tf.io.gfile.glob(f"{folder}/model/ckpt-3.data-*"))[-1]
    with tf.io.gfile.GFile(last, "rb") as file:
        whole = file.read()
    with tf.io.gfile.GFile(last, "wb") as file:
        file.write(whole[:-1])
    assert restore_newest(checkpoint, f"{folder}/model") == f"{folder}/model/ckpt-2"
    assert (tf.convert_to_tensor(variable).numpy() == 2).all()
    module = tf.Module()
    module.v = variable
    module.sums = tf.function(
        lambda x: {"y": tf.reduce_sum(tf.nn.embedding_lookup(module.v, x))},
        input_signature=[tf.TensorSpec([None], tf.int64, name="x")],
    )
    assert export_model(module, f"{folder}/export", is_lead=True) == f"{folder}/export/1"


if __name__ == "__main__":
    main(sys.argv[1])
