"""Texts of job.yaml that are right, and helpers that read one from a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfy.errors import EXIT_SPEC, SpecError
from tfy.load import load
from tfy.spec import JobSpec

SMALLEST = """\
name: digits
program: train.py
tasks:
  ps: {memory: 1 GiB}
  worker: {memory: 2 GiB}
"""

FULL = """\
name: digits
program: train.py
args: ["--epochs", "3", "--user=${WHO}", "a$$b", "cost: 5$"]
files: [./train.py, lib/]
python_env: local
queue: root.ml
strategy: parameter_server
tasks:
  ps: {instances: 2, memory: 1024m, vcores: 2}
  worker: {instances: "${WORKERS}", memory: "${MEMORY}", vcores: 3, gpus: 2, node_label: gpu}
  chief: {memory: 4g}
  evaluator: {memory: 2g, gpus: 1}
  driver: {memory: 1.5 GiB, vcores: 2}
rdma: preferred
input:
  mode: tensorflow
  paths: ["hdfs:///data/train/*.tfrecord", "viewfs://cluster/data//more/"]
  shard: record
  unequal: repeat
  seed: 7
checkpoint: {dir: "hdfs://ns1/models/${WHO}/", keep: 5}
export: {dir: "hdfs://ns1/serving/${WHO}/", keep: 2}
timeouts: {start: 2 min, total: 6h, evaluate: 1 min}
env: {A: "1", B: "${WHO}"}
"""

ENVIRON = {"WHO": "ada", "WORKERS": "4", "MEMORY": "3 GiB"}


def make_folder(path: Path) -> Path:
    """Fill `path` as a job's folder is: a program and a library beside where job.yaml will be."""
    (path / "train.py").touch()
    (path / "lib").mkdir()
    (path / "lib" / "model.py").touch()
    return path


def load_text(folder: Path, text: str) -> JobSpec:
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    return load(folder / "job.yaml", ENVIRON)


def refusals(folder: Path, text: str) -> list[str]:
    """The lines of the error, each from its `job.yaml` on."""
    with pytest.raises(SpecError) as refused:
        load_text(folder, text)
    assert refused.value.exit_status == EXIT_SPEC
    return [line.replace(f"{folder}/", "") for line in refused.value.message.split("\n")]
