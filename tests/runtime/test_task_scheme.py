"""tfy://, the door between a graph and its process. It needs TensorFlow, but no HDFS."""

from __future__ import annotations

from typing import Any

import pytest

from tfy.runtime.filesystem import Counters, hook_path, plugin_path, read_counters, register

pytestmark = pytest.mark.timeout(120)


def count(name: str) -> int:
    return read_counters().counts.get(name, 0)


def test_registering_again_changes_nothing(tf: Any) -> None:
    register()
    register()


def test_the_plugin_and_the_hook_are_where_they_are_looked_for() -> None:
    assert plugin_path().is_file()
    assert (hook_path() / "sitecustomize.py").is_file()


def test_a_graph_learns_its_task(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @tf.function  # type: ignore[untyped-decorator]
    def index(salt: Any) -> Any:
        return tf.io.read_file(tf.strings.join(["tfy://task/index?", tf.strings.as_string(salt)]))

    for value in ("0", "17"):
        monkeypatch.setenv("TFY_TASK_INDEX", value)
        assert index(tf.constant(1)).numpy() == value.encode()


def test_a_process_that_is_no_task_is_told_the_variable(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFY_TASK_INDEX", raising=False)
    with pytest.raises(tf.errors.NotFoundError, match="TFY_TASK_INDEX of this process is not set"):
        tf.io.read_file("tfy://task/index")


def test_a_dataset_counts_each_element_once(tf: Any) -> None:
    def counted(element: Any) -> Any:
        # Nothing depends on it: a stateful operation runs all the same.
        tf.io.write_file("tfy://count/test/elements", "1")
        return element

    before = count("test/elements")
    dataset = tf.data.Dataset.range(1000).map(counted, num_parallel_calls=4).batch(7).prefetch(2)
    assert sum(len(batch) for batch in dataset) == 1000
    assert count("test/elements") - before == 1000


def test_amounts_are_computed_in_the_graph(tf: Any) -> None:
    def counted(batch: Any) -> Any:
        tf.io.write_file("tfy://count/test/records?batch", tf.strings.as_string(tf.size(batch)))
        return batch

    before = count("test/records")
    assert len(list(tf.data.Dataset.range(10).batch(4).map(counted))) == 3
    assert count("test/records") - before == 10


def test_only_numbers_are_counted(tf: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match='count/test/x: "many" is not a whole number'):
        tf.io.write_file("tfy://count/test/x", "many")
    assert count("test/x") == 0


def test_nothing_else_is_possible(tf: Any) -> None:
    for action in [
        tf.io.gfile.glob,
        tf.io.gfile.remove,
        tf.io.gfile.rmtree,
        tf.io.gfile.mkdir,
        lambda path: tf.io.gfile.rename(path, path + "2", overwrite=True),
        lambda path: tf.io.gfile.GFile(path, "a").write("1"),
        lambda path: tf.io.read_file(path),
    ]:
        with pytest.raises(tf.errors.UnimplementedError, match="tfy://count/test/x"):
            action("tfy://count/test/x")


def test_many_counts_fit_into_the_answer(tf: Any) -> None:
    for index in range(60):
        tf.io.write_file(f"tfy://count/test/a-rather-long-name-for-a-count/{index}", "-2")
    counters = read_counters()
    assert isinstance(counters, Counters)
    assert counters.counts["test/a-rather-long-name-for-a-count/59"] == -2
