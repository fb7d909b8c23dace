"""Files on HDFS by way of TensorFlow, for tests of the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any


def write(tf: Any, path: str, data: bytes = b"data", mode: str = "wb") -> str:
    with tf.io.gfile.GFile(path, mode) as file:
        file.write(data)
    return path


def read(tf: Any, path: str) -> bytes:
    with tf.io.gfile.GFile(path, "rb") as file:
        return bytes(file.read())


def run_python(code: str, **environ: str) -> str:
    """The output of a process that has the plugin registered."""
    program = "import tensorflow as tf\nfrom tfy.runtime.filesystem import *\nregister()\n" + textwrap.dedent(
        code
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
