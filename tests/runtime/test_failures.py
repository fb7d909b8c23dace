"""How a program's end is told."""

from __future__ import annotations

import pytest

from tfy.runtime.failures import describe_end, explain_failure

KERAS = """Traceback (most recent call last):
  File "train.py", line 7, in <module>
    model.fit(data)
ValueError: Attempt to convert a value (PerReplica:{
  0: <tf.Tensor: shape=(4,)>
}) with an unsupported type"""


def test_a_known_failure_begins_with_what_helps() -> None:
    first = describe_end(1, KERAS, 1024).splitlines()[0]
    assert first.startswith(
        "exit code 1: Keras 3's fit does not run under multi_worker_mirrored: use tf_keras"
    )
    assert first.endswith("[ValueError: Attempt to convert a value (PerReplica:{]")
    assert KERAS in describe_end(1, KERAS, 1024)


def test_an_unknown_one_has_its_own_words_alone() -> None:
    assert explain_failure("ValueError: in its last line") is None
    assert describe_end(3, "last", 1024) == "exit code 3: last"
    assert describe_end(3, "", 1024) == "exit code 3"


@pytest.mark.parametrize(
    ("code", "told"), [(-9, "out of memory? its container has 1 GiB"), (-15, "signal 15")]
)
def test_a_signal_is_told(code: int, told: str) -> None:
    assert told in describe_end(code, "", 1024)
