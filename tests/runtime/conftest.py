"""TensorFlow with the plugin, once in the test process: its import takes seconds."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.conftest import Hdfs
from tfy.runtime.filesystem import register


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, with the plugin registered."""
    import tensorflow

    register()
    return tensorflow


@pytest.fixture
def folder(tf: Any, hdfs: Hdfs, request: pytest.FixtureRequest) -> str:
    """An empty directory on HDFS of the test's own."""
    path = f"{hdfs.uri}/tmp/test_filesystem/{request.node.originalname}-{time.time_ns()}"
    tf.io.gfile.makedirs(path)
    return path
