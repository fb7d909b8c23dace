"""Exported models: whole, versioned, servable."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tfy.runtime.export import export_model


@pytest.fixture(scope="module")
def module(tf: Any) -> Any:
    """Triples what it is given."""
    made = tf.Module()
    made.factor = tf.Variable(3.0)
    made.triple = tf.function(
        lambda x: {"y": x * made.factor}, input_signature=[tf.TensorSpec([None], tf.float32, name="x")]
    )
    return made


def serve(tf: Any, path: str | None, **inputs: Any) -> Any:
    """What TensorFlow Serving would answer: the default signature of the model that was loaded."""
    (output,) = tf.saved_model.load(path).signatures["serving_default"](**inputs).values()
    return output.numpy().tolist()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_versions_count_up_and_each_is_loadable(tf: Any, tmp_path: Path, module: Any) -> None:
    folder = tmp_path / "a model's exports"
    for version in (1, 2, 3):
        assert export_model(module, str(folder), is_lead=True) == f"{folder}/{version}"
    assert names(folder) == ["1", "2", "3"]
    assert serve(tf, f"{folder}/3", x=tf.constant([2.0, 4.0])) == [6.0, 12.0]


def test_signatures_are_those_given(tf: Any, tmp_path: Path) -> None:
    plain = tf.Module()
    plain.factor = tf.Variable(5.0)
    plain.times = tf.function(lambda x: {"y": x * plain.factor})
    signature = plain.times.get_concrete_function(tf.TensorSpec([], tf.float32, name="x"))
    path = export_model(plain, str(tmp_path), is_lead=True, signatures={"five": signature})
    assert list(tf.saved_model.load(path).signatures) == ["five"]
    path = export_model(plain, str(tmp_path), is_lead=True, signatures=signature)
    assert serve(tf, path, x=tf.constant(2.0)) == 10.0


def test_a_model_that_cannot_be_served_is_told(
    tf: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = tf.Module()
    plain.factor = tf.Variable(5.0)
    assert export_model(plain, str(tmp_path), is_lead=True) == f"{tmp_path}/1"
    assert any("no signatures" in message for message in caplog.messages)


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
def test_both_keras_serve_what_they_predict(
    tf: Any, tmp_path: Path, library: str, caplog: pytest.LogCaptureFixture
) -> None:
    keras = pytest.importorskip(library)
    layers = [keras.layers.Input([4], name="x"), keras.layers.Dense(3), keras.layers.BatchNormalization()]
    model = keras.Sequential(layers)
    path = export_model(model, str(tmp_path), is_lead=True)
    inputs = tf.random.normal([2, 4])
    (name,) = tf.saved_model.load(path).signatures["serving_default"].structured_input_signature[1]
    tf.debugging.assert_near(serve(tf, path, **{name: inputs}), model(inputs))
    assert not [message for message in caplog.messages if "signatures" in message]
    signature = tf.function(lambda x: {"y": 2 * model(x)}).get_concrete_function(
        tf.TensorSpec([None, 4], tf.float32, name="x")
    )
    path = export_model(model, str(tmp_path), is_lead=True, signatures=signature)
    tf.debugging.assert_near(serve(tf, path, x=inputs), 2 * model(inputs))


def test_only_the_lead_writes(tmp_path: Path, module: Any) -> None:
    assert export_model(module, f"{tmp_path}/model", is_lead=False) is None
    assert names(tmp_path) == []


def test_what_cannot_be_saved_leaves_nothing(tf: Any, tmp_path: Path, module: Any) -> None:
    export_model(module, str(tmp_path), is_lead=True)
    outside = tf.Variable(1.0)
    broken = tf.Module()
    broken.call = tf.function(lambda x: x * outside, input_signature=[tf.TensorSpec([], tf.float32)])
    with pytest.raises((AssertionError, ValueError)):
        export_model(broken, str(tmp_path), is_lead=True)
    with pytest.raises(ValueError, match="keep is 0"):
        export_model(module, str(tmp_path), is_lead=True, keep=0)
    assert names(tmp_path) == ["1"]


def test_old_versions_go_and_other_folders_stay(tmp_path: Path, module: Any) -> None:
    for name in ("3", "10", "9", "best", "7.old"):
        (tmp_path / name).mkdir()
    assert export_model(module, str(tmp_path), is_lead=True, keep=2) == f"{tmp_path}/11"
    assert names(tmp_path) == ["10", "11", "7.old", "best"]


def test_leftovers_of_killed_programs_go_after_a_day(tmp_path: Path, module: Any) -> None:
    for name, hours in ((".writing-a", 25), (".writing-b", 23), (".removing-c", 25), ("other", 900)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        now = (tmp_path / name).stat().st_mtime
        os.utime(tmp_path / name, (now - 3600 * hours,) * 2)
    export_model(module, str(tmp_path), is_lead=True)
    assert names(tmp_path) == [".writing-b", "1", "other"]


def make_stuck(path: Path) -> Path:
    """A folder under another name that TensorFlow cannot remove: it takes a link for a folder."""
    path.parent.with_name("elsewhere").mkdir(exist_ok=True)
    path.symlink_to(path.parent.with_name("elsewhere"))
    return path


def test_what_cannot_be_cleaned_does_not_undo_an_export(
    tmp_path: Path, module: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    make_stuck(folder / "1")
    left = make_stuck(folder / ".writing-a")
    now = left.stat().st_mtime
    os.utime(left, (now - 90_000,) * 2)
    assert export_model(module, str(folder), is_lead=True, keep=1) == f"{folder}/2"
    assert (folder / "2" / "saved_model.pb").exists()
    assert [message for message in caplog.messages if f"{left} is not removed" in message]
    assert [message for message in caplog.messages if "/.removing-" in message]


def test_what_cannot_be_cleaned_does_not_hide_why_an_export_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keras = pytest.importorskip("keras")

    class Broken(keras.Model):  # type: ignore[misc, name-defined]
        def export(self, path: str, **_: object) -> None:
            make_stuck(Path(path))
            raise ValueError("the first cause")

    with pytest.raises(ValueError, match="the first cause"):
        export_model(Broken(), str(tmp_path / "exports"), is_lead=True)
    assert [message for message in caplog.messages if "is not removed" in message]


def test_several_at_once_get_a_number_each(tf: Any, tmp_path: Path, module: Any) -> None:
    start = threading.Barrier(4)
    paths = []

    def export() -> None:
        start.wait(timeout=60)
        paths.append(export_model(module, str(tmp_path), is_lead=True))

    threads = [threading.Thread(target=export) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert sorted(map(str, paths)) == [f"{tmp_path}/{version}" for version in (1, 2, 3, 4)]
    assert names(tmp_path) == ["1", "2", "3", "4"]
    for path in paths:
        assert serve(tf, path, x=tf.constant([1.0])) == [3.0]


def test_a_version_that_another_program_finished_first_stays(tf: Any, tmp_path: Path, module: Any) -> None:
    taking = tf.Module()
    taking.factor = tf.Variable(1.0)

    def take(x: Any) -> Any:
        # Traced while it is saved: another program is done first.
        (tmp_path / "1").mkdir(exist_ok=True)
        (tmp_path / "1" / "saved_model.pb").write_bytes(b"another's")
        return {"y": x * taking.factor}

    taking.call = tf.function(take, input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    assert export_model(taking, str(tmp_path), is_lead=True) == f"{tmp_path}/2"
    assert (tmp_path / "1" / "saved_model.pb").read_bytes() == b"another's"


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_on_hdfs_too(tf: Any, folder: str, module: Any) -> None:
    for version in (1, 2, 3):
        assert export_model(module, folder, is_lead=True, keep=2) == f"{folder}/{version}"
    assert sorted(tf.io.gfile.listdir(folder)) == ["2", "3"]
    assert serve(tf, f"{folder}/3", x=tf.constant([2.0])) == [6.0]
    # What a race comes down to: HDFS itself must refuse to rename onto a version.
    tf.io.gfile.makedirs(f"{folder}/draft")
    with pytest.raises(tf.errors.OpError):
        tf.io.gfile.rename(f"{folder}/draft", f"{folder}/3", overwrite=True)
    assert serve(tf, f"{folder}/3", x=tf.constant([2.0])) == [6.0]
