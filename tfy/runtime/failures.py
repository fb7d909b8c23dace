"""How a program's end is told; and what TensorFlow's and Keras' own words do not explain, with what helps."""

from __future__ import annotations

import signal

from tfy.runtime.process import telling_line
from tfy.units import format_memory

_KNOWN = (
    # Keras 3's `fit` hands a distributed value to NumPy (docs/job.md: which Keras).
    (
        "PerReplica",
        "Keras 3's fit does not run under multi_worker_mirrored: use tf_keras (`import tf_keras` in place of "
        "`import keras`; with tf.keras tfy chooses it where it is installed)",
    ),
    (
        "corrupted record at 0 (Is this even a TFRecord file?)",
        "a file under input.paths is no TFRecord file, or is compressed in a way that is not known",
    ),
)


def explain_failure(last_words: str) -> str | None:
    """What helps against a failure, by its traceback or its last lines; None where it is not known."""
    for sign, help_text in _KNOWN:
        if sign in last_words:
            return help_text
    return None


def describe_end(code: int, last_words: str, memory_mib: int) -> str:
    """How a program ended: in its first line the most telling words, then the last of its log."""
    how = f"exit code {code}"
    if code < 0:
        how = f"killed by signal {-code}"
        if -code == signal.SIGKILL:
            how += f" (out of memory? its container has {format_memory(memory_mib)})"
    if not last_words:
        return how
    line = telling_line(last_words)
    helps = explain_failure(last_words)
    if helps is not None:
        line = f"{helps} [{line}]"
    return f"{how}: {line}" if line == last_words else f"{how}: {line}\n{last_words}"
