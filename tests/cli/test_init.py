"""`tfy init`: what it finds in a program, and that what it writes is a job."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner, Result

from tfy.cli import main
from tfy.errors import SpecError
from tfy.job_keys import JOB_KEYS
from tfy.job_template import Draft, make_template
from tfy.job_values import check_name
from tfy.load import load
from tfy.program_text import read_program
from tfy.spec import Strategy
from tfy.task_keys import STRATEGY_TASKS
from tfy.yaml_marks import Mapping, Node, parse_yaml

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def init(folder: Path, *args: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(main, ["init", *args], prog_name="tfy")


def uncomment(text: str) -> str:
    """The file with every key that is commented out taken in."""
    return re.sub(r"^( *)# ( *[a-z_]+:)", r"\1\2", text, flags=re.MULTILINE)


def list_keys(node: Node | None, path: str = "") -> set[str]:
    found = set()
    for entry in node.entries if isinstance(node, Mapping) else ():
        found |= {f"{path}{entry.key}", *list_keys(entry.value, f"{path}{entry.key}.")}
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_written_loads_as_it_is_and_with_every_key(strategy: Strategy, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert init(tmp_path, "--strategy", strategy).exit_code == 0
    job = tmp_path / "job.yaml"
    spec = load(job, {})
    assert (spec.name, spec.program, spec.strategy, spec.files) == ("train", "train.py", strategy, ())
    required = STRATEGY_TASKS[strategy].required or ("worker",)
    assert {task.type for task in spec.tasks} - {"chief"} == set(required)
    text = job.read_text()
    job.write_text(uncomment(text))
    load(job, {})
    # Every key is in it, but those that the strategy refuses.
    refused = {f"tasks.{task_type}" for task_type, _ in STRATEGY_TASKS[strategy].refused}
    wanted = {f"{path}.{key}".lstrip(".") for path, keys in JOB_KEYS.items() for key in keys.known}
    wanted = {key for key in wanted if not any(f"{key}.".startswith(f"{path}.") for path in refused)}
    assert list_keys(parse_yaml(job.read_text())[0]) == wanted
    # Each with a line that says what it is.
    assert all("  # " in line or " # " in line for line in text.splitlines()[4:] if line)


PS = "import tensorflow as tf\nstrategy = tf.distribute.ParameterServerStrategy(resolver)\n"
COORDINATOR = "from tensorflow.distribute.coordinator import ClusterCoordinator as C\n"
MIRRORED = (
    "import os, tensorflow as tf\nos.environ['TF_CONFIG']\ntf.distribute.MultiWorkerMirroredStrategy()\n"
)
FIT = "import keras\nmodel = keras.Sequential()\nmodel.fit(x, y)\n"
SERVER = "import tensorflow as tf\ntf.distribute.Server(spec).join()\n"
OWN = "import json, os\nconfig = json.loads(os.environ['TF_CONFIG'])\n"


@pytest.mark.parametrize(
    ("program", "strategy", "why"),
    [
        (PS, "parameter_server", "train.py names ParameterServerStrategy"),
        (COORDINATOR, "parameter_server", "train.py names ClusterCoordinator"),
        (MIRRORED, "multi_worker_mirrored", "train.py names MultiWorkerMirroredStrategy"),
        (FIT, "multi_worker_mirrored", "train.py calls fit"),
        (SERVER, "none", "train.py names distribute.Server"),
        (OWN, "none", "train.py names TF_CONFIG"),
        ("from sklearn.svm import SVC\nSVC().fit(x, y)\n", "parameter_server", "names no strategy"),
        ('"""Sets TF_CONFIG? Not here."""\nfit(x)\n', "parameter_server", "names no strategy"),
    ],
)
def test_the_text_tells_the_strategy(program: str, strategy: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program)
    result = init(tmp_path)
    assert result.exit_code == 0, result.stderr
    assert f"strategy {strategy}: " in result.stderr
    assert why in result.stderr
    assert load(tmp_path / "job.yaml", {}).strategy == strategy


def test_modules_beside_the_program_come_along(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for name in ("models/__init__.py", "models/deep.py", "plain/a.py", "json/a.py", "unused.py", "old.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).touch()
    (source / "old.py").write_text("print 'Python 2'")
    (source / "models" / "deep.py").write_text(SERVER + "def f():\n    import helper\n")
    (source / "helper.py").write_text("from . import unused\nimport run\n")
    (source / "run.py").write_text("import json, numpy, old\nfrom models.deep import f\nimport plain.a\n")
    result = init(tmp_path, "src/run.py")
    assert result.exit_code == 0, result.stderr
    assert "strategy none: models/deep.py names distribute.Server" in result.stderr
    spec = load(tmp_path / "job.yaml", {})
    assert spec.program == "src/run.py"
    assert spec.files == ("src/helper.py", "src/models", "src/old.py", "src/plain")


def test_nothing_is_overwritten_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    job = tmp_path / "job.yaml"
    job.write_text("mine\n")
    refused = init(tmp_path)
    assert refused.exit_code == 2
    assert "job.yaml exists already" in refused.stderr
    assert "--force" in refused.stderr
    assert job.read_text() == "mine\n"
    assert init(tmp_path, "--force").stdout == "job.yaml\n"
    assert load(job, {}).name == "train"
    assert init(tmp_path, "-o", "other.yaml").exit_code == 0
    assert (tmp_path / "other.yaml").exists()


@pytest.mark.parametrize(
    ("files", "args", "said"),
    [
        ((), (), "no Python file: which one trains?"),
        (("a.py", "b.py"), (), "a.py, b.py: which one trains?"),
        ((), ("gone.py",), "gone.py: no such file"),
        (("job/x.txt", "a.py"), ("a.py", "-o", "job/job.yaml"), "is not within"),
        (("a.py", "no/x"), ("a.py", "-o", "no"), "no is a folder"),
        (("a.py", "job.yaml/x"), ("a.py", "--force"), "job.yaml is a folder"),
    ],
)
def test_refusals(files: tuple[str, ...], args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    result = init(tmp_path, *args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not [path for path in tmp_path.rglob("*.yaml") if path.is_file()]


def test_the_only_python_file_is_the_program(tmp_path: Path) -> None:
    (tmp_path / "run.py").touch()
    assert init(tmp_path).exit_code == 0
    assert load(tmp_path / "job.yaml", {}).program == "run.py"


def test_a_program_that_is_no_python_is_refused(tmp_path: Path) -> None:
    for text, said in ((b"x = (\n", r":1: not valid Python"), (b"\0", "not valid Python")):
        (tmp_path / "train.py").write_bytes(text)
        with pytest.raises(SpecError, match=said):
            read_program(tmp_path / "train.py")


@pytest.mark.parametrize(
    "program", ["1.py", "häh $x.py", "yes", 'a"b.py', "über.py", "a: b.py", f"{'n' * 90}.py"]
)
def test_odd_names_are_written_so_that_they_load(program: str, tmp_path: Path) -> None:
    (tmp_path / program).touch()
    draft = Draft(program=program, files=(program,), strategy="none")
    (tmp_path / "job.yaml").write_text(make_template(draft))
    spec = load(tmp_path / "job.yaml", {})
    assert (spec.program, spec.files) == (program, (program,))
    check_name(spec.name)
