"""job.yaml: for each kind of mistake, the line that the user reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.job_files import SMALLEST, make_folder, refusals


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder without its job.yaml."""
    return make_folder(tmp_path)


ADDED = [
    # one line more than SMALLEST (so line 6) → what the user reads after `job.yaml:6: `
    ("wokers: 3", "wokers: unknown key; known keys: name, program, args, files, python_env, queue, "),
    ("Queue: x", 'Queue: unknown key; did you mean "queue"?'),
    ("name: again", "name: given twice; the first is on line 1"),
    ("rounds: {max: 3}", "rounds: not supported yet"),
    ("module: pkg.train", "module: not supported yet"),
    ("rdma: yes", "rdma: 'yes' is not an rdma setting; accepted: off, preferred, required"),
    ("rdma: [off]", "rdma: a list stands here; off, preferred or required is expected"),
    ("rdma: always", "rdma: 'always' is not an rdma setting; accepted: off, preferred, required"),
    ("tensorboard: false", "tensorboard: not supported yet"),
    ("spark: {conf: {}}", "spark: not supported yet"),
    ("python_env: {path: /opt}", "python_env: a mapping stands here; a string is expected"),
    ("python_env: conda", "python_env: 'conda' is not supported yet; accepted: local"),
    (
        "strategy: mirrored",
        "strategy: 'mirrored' is not a strategy; accepted: parameter_server, multi_worker_mirrored, none",
    ),
    ("args: --epochs 3", 'args: "--epochs 3" is a string; a list of strings is expected: [...]'),
    ('args: ["--n", 3]', 'args[1]: 3 is an integer in YAML; a string is expected, so quote it: "3"'),
    ("args: [~]", "args[0]: has no value; a string is expected"),
    ("args: [2001-01-01]", "args[0]: 2001-01-01 is of a special type in YAML"),
    ('args: ["a\\0b"]', "args[0]: has a NUL character in it"),
    ('args: ["${GONE}"]', "args[0]: the environment variable GONE is not set where tfy runs"),
    ('args: ["$WHO"]', "args[0]: write ${WHO} for the variable's value, or $$WHO for a plain dollar"),
    ('args: ["${WHO:-x}"]', "args[0]: '${WHO:-x}' is not a variable; accepted: ${NAME}"),
    ('args: ["${WHO"]', "args[0]: '${WHO' is not a variable"),
    ("env: {A: 1}", 'env.A: 1 is an integer in YAML; a string is expected, so quote it: "1"'),
    ("env: {B: yes}", 'env.B: yes is a boolean in YAML; a string is expected, so quote it: "yes"'),
    ("env: {C: }", "env.C: has no value; a string is expected"),
    ("env: {D: [x]}", "env.D: a list stands here; a string is expected"),
    ("env: [A=1]", "env: a list stands here; a mapping from names to strings is expected"),
    ("env: {1A: x}", "env.1A: not a variable's name; accepted: letters, digits and '_'"),
    ("env: {TFY_PLAN: x}", "env.TFY_PLAN: set by tfy itself, a job cannot change it"),
    ("env: {TF_CONFIG: x}", "env.TF_CONFIG: set by tfy itself"),
    ("env: {CONTAINER_ID: x}", "env.CONTAINER_ID: set by tfy itself"),
    ("env: {HADOOP_CONF_DIR: x}", "env.HADOOP_CONF_DIR: set by tfy itself"),
    ("env: {PYTHONPATH: lib}", "env.PYTHONPATH: set by tfy itself; list your modules under files"),
    ("queue: a b", "queue: 'a b' is not a queue"),
    ("queue: 7", 'queue: 7 is an integer in YAML; a string is expected, so quote it: "7"'),
    ("files: [gone.py]", "files[0]: 'gone.py' does not exist in "),
    (
        "files: [../x]",
        "files[0]: '../x' is not accepted; give a path inside job.yaml's folder, relative to it",
    ),
    ("files: [/etc/hosts]", "files[0]: '/etc/hosts' is not accepted; give a path inside job.yaml's folder"),
    ("files: [~/a.zip]", "files[0]: '~/a.zip' is not accepted"),
    ("files: [.]", "files[0]: '.' is the whole folder of job.yaml"),
    ("files: [train.py, ./train.py]", "files: 'train.py' is given twice"),
    ("files: [lib, lib/model.py]", "files: 'lib/model.py' is already inside 'lib'"),
    ("timeouts: {start: 10}", """timeouts.start: '10' has no unit; write "10 s" or "10 min\""""),
    ("timeouts: {start: 2 h, total: 1 h}", "timeouts.start: 2 h is longer than total"),
    ("timeouts: {stop: 1 h}", "timeouts.stop: unknown key"),
    (
        "timeouts: 1 h",
        'timeouts: "1 h" is a string; a mapping with the keys start, total, evaluate is expected',
    ),
    ("checkpoint: {keep: 3}", 'checkpoint.dir: missing; give for example dir: "hdfs:///models/digits"'),
    ('checkpoint: {dir: "hdfs:///m", keep: 0}', "checkpoint.keep: 0 is too small; accepted: 1 or more"),
    ('checkpoint: {dir: "hdfs:///m", keep: 0x10}', "checkpoint.keep: '0x10' is not a whole number in plain"),
    (
        'checkpoint: {dir: "hdfs:///m", keep: true}',
        "checkpoint.keep: true is a boolean in YAML; a whole number",
    ),
    (
        'checkpoint: {dir: "hdfs:///m", keep: "3"}',
        'checkpoint.keep: "3" is a string; a whole number is expected',
    ),
    ('checkpoint: {dir: "hdfs:///m/*"}', "checkpoint.dir: 'hdfs:///m/*' is a pattern; give one folder"),
    (
        "checkpoint: {dir: m}",
        "checkpoint.dir: 'm' is a relative path; accepted: a full URI, as hdfs:///user/me",
    ),
    (
        "checkpoint: {dir: /tmp/x}",
        "checkpoint.dir: '/tmp/x' is a path of one machine only; accepted: a full URI",
    ),
    ("checkpoint: {dir: ~/x}", "checkpoint.dir: '~/x' is a path of one machine only; accepted: a full URI"),
    (
        'checkpoint: {dir: "file:///x"}',
        "checkpoint.dir: 'file:///x' is on file://, which every task cannot reach",
    ),
    ('checkpoint: {dir: "hdfs://ns1"}', "checkpoint.dir: 'hdfs://ns1' has no path; accepted: a full URI"),
    ("input: {paths: []}", "input.paths: the list is empty"),
    ("input: {}", 'input.paths: missing; give for example paths: ["hdfs:///data/digits/*.tfrecord"]'),
    ('input: {paths: "hdfs:///d"}', 'input.paths: "hdfs:///d" is a string; a list of strings is expected'),
    (
        'input: {paths: ["hdfs:///d/a b"]}',
        "input.paths[0]: 'hdfs:///d/a b' has a blank in it; accepted: a full",
    ),
    (
        "input: {paths: [\u201chdfs:///d\u201d]}",
        "input.paths[0]: '\u201chdfs:///d\u201d' has the curly quote \u201c in it; use plain quotes",
    ),
    (
        'input: {paths: ["hdfs:///d/../e"]}',
        "input.paths[0]: 'hdfs:///d/../e' has a '.', '..' or ':' in its path",
    ),
    ('input: {paths: ["hdfs:///d", "hdfs:///d/"]}', "input.paths: 'hdfs:///d' is given twice"),
    ('input: {mode: spark, paths: ["hdfs:///d"]}', "input.mode: 'spark' is reserved and not supported yet"),
    (
        'input: {mode: local, paths: ["hdfs:///d"]}',
        "input.mode: 'local' is not an input mode; accepted: tensorflow",
    ),
    (
        'input: {shard: files, paths: ["hdfs:///d"]}',
        "input.shard: 'files' is not a way to share out files; accepted: auto, file, record",
    ),
    (
        'input: {unequal: keep, paths: ["hdfs:///d"]}',
        "input.unequal: 'keep' is not a way to treat unequal numbers of batches; accepted: repeat, drop",
    ),
    (
        'input: {unequal: drop, paths: ["hdfs:///d"]}',
        "input.unequal: 'drop' is not possible under parameter_server, where each worker reads at its",
    ),
    ('input: {seed: -1, paths: ["hdfs:///d"]}', "input.seed: -1 is too small; accepted: 0 or more"),
    ("export: {keep: 1}", 'export.dir: missing; give for example dir: "hdfs:///serving/digits"'),
    ('export: {dir: "hdfs:///m/*"}', "export.dir: 'hdfs:///m/*' is a pattern; give one folder"),
    ("timeouts: {evaluate: 5}", "timeouts.evaluate: '5' has no unit"),
    ("  chief: {memory: 512 MiB}", "tasks.chief.memory: 512 MiB is too little; accepted: 1024 MiB or more"),
    ("  chief: {instances: 2}", "tasks.chief.instances: there is always exactly one"),
    (
        "  driver: {memory: 1000 MiB}",
        "tasks.driver.memory: 1000 MiB is too little; accepted: 1024 MiB or more",
    ),
    ("  driver:", "tasks.driver: has no value; a mapping with the keys memory, vcores, node_label is"),
    ("  driver: {gpus: 1}", "tasks.driver.gpus: the driver computes nothing"),
    ("  chief: {gpus: yes}", "tasks.chief.gpus: yes is a boolean in YAML; a whole number is expected"),
    ("  chief: {gpus: -1}", "tasks.chief.gpus: -1 is too small; accepted: 0 or more"),
    (
        "  worker2: {memory: 1 GiB}",
        'tasks.worker2: unknown key; did you mean "worker"? known keys: worker, ps',
    ),
    ("  <<: {}", "tasks.<<: merging is not supported; write the keys out"),
    ("? [a, b]\n: c", "a key must be a single word"),
    ("x: [}", "not valid YAML: "),
    ("x: \tb: {", "not valid YAML: "),
    ("x: a\x01b", "not valid YAML: special characters are not allowed"),
]


@pytest.mark.parametrize(("added", "expected"), ADDED, ids=[added for added, _ in ADDED])
def test_one_mistake_gives_one_line(folder: Path, added: str, expected: str) -> None:
    lines = refusals(folder, SMALLEST + added + "\n")
    assert len(lines) == 1 or added.startswith("wokers"), lines
    assert lines[0].startswith(f"job.yaml:6: {expected}")


REPLACED = [
    # a line of SMALLEST → what stands there instead → what the user reads
    (
        "name: digits",
        "name: 5",
        "job.yaml:1: name: 5 is an integer in YAML; a string is expected, so quote it",
    ),
    ("name: digits", "name: 1st", "job.yaml:1: name: '1st' is not a job's name; accepted: a letter, then"),
    ("name: digits", 'name: "a b"', "job.yaml:1: name: 'a b' is not a job's name"),
    ("name: digits", "name: application_1_2", "job.yaml:1: name: 'application_1_2' looks like YARN's"),
    ("name: digits\n", "", "job.yaml:1: name: missing; give for example name: digits"),
    ("program: train.py\n", "", "job.yaml:1: program: missing; give for example program: train.py"),
    ("train.py", "lib", "job.yaml:2: program: 'lib' is a folder; give a Python file"),
    ("train.py", "gone.py", "job.yaml:2: program: 'gone.py' does not exist in "),
    ("train.py", "../train.py", "job.yaml:2: program: '../train.py' is not accepted; give a path inside"),
    ("1 GiB", "true", "job.yaml:4: tasks.ps.memory: 'true' is not a memory size; write it like 4 GiB"),
    ("1 GiB", "4096", """job.yaml:4: tasks.ps.memory: '4096' has no unit; write "4096 MiB" or"""),
    ("1 GiB", "", "job.yaml:4: tasks.ps.memory: has no value; a memory size is expected"),
    ("1 GiB", "[1]", "job.yaml:4: tasks.ps.memory: a list stands here; a memory size is expected"),
    ("1 GiB", "700m", "job.yaml:4: tasks.ps.memory: 700 MiB is too little; accepted: 768 MiB or more"),
    ("memory: 1 GiB", "instances: 2", "job.yaml:4: tasks.ps.memory: missing; give for example memory: 2 GiB"),
    ("memory: 1 GiB", "memory: 1 GiB, instances: 0", "job.yaml:4: tasks.ps.instances: 0 is too small"),
    ("memory: 1 GiB", "memory: 1 GiB, instances: -1", "job.yaml:4: tasks.ps.instances: -1 is too small"),
    ("memory: 1 GiB", "memory: 1 GiB, instances: 1.5", "job.yaml:4: tasks.ps.instances: 1.5 is a number in"),
    (
        "memory: 1 GiB",
        "memory: 1 GiB, node_label: a && b",
        "job.yaml:4: tasks.ps.node_label: 'a && b' is not a node label",
    ),
    ("  ps: {memory: 1 GiB}\n", "", "job.yaml:4: tasks.ps: missing; give for example ps: {memory: 1 GiB}"),
    ("ps: {memory: 1 GiB}", "ps: [1]", "job.yaml:4: tasks.ps: a list stands here; a mapping with the keys"),
    (
        "2 GiB",
        "1 GiB",
        "job.yaml:5: tasks.worker.memory: 1 GiB is too little; accepted: 1536 MiB or more "
        "(Spark's JVM heap (512 MiB), Python and TensorFlow share it)",
    ),
    ("2 GiB", '"${GONE}"', "job.yaml:5: tasks.worker.memory: the environment variable GONE is not set"),
]


@pytest.mark.parametrize(("old", "new", "expected"), REPLACED, ids=[expected for _, _, expected in REPLACED])
def test_one_wrong_value_gives_one_line(folder: Path, old: str, new: str, expected: str) -> None:
    assert old in SMALLEST
    lines = refusals(folder, SMALLEST.replace(old, new, 1))
    assert len(lines) == 1, lines
    assert lines[0].startswith(expected)
