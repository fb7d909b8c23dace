"""What the docs claim is held true: verbs, keys, the job, the commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LocalHadoop
from tests.jobs.running import TFY
from tfy.cli import VERBS
from tfy.job_keys import JOB_KEYS
from tfy.job_reference import insert_reference, make_reference
from tfy.load import load

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LIMIT_S = 300


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language in the README."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[list[str]]:
    return [shlex.split(line) for block in blocks("sh") for line in block.splitlines() if line.strip()]


def test_the_readme_shows_every_verb() -> None:
    for verb in VERBS:
        assert f"`tfy {verb} " in README, verb


def test_the_readme_begins_with_two_sentences() -> None:
    first = README.split("\n\n")[1]
    assert len(re.findall(r"\.(?:\s|$)", first)) == 2


def test_the_readmes_job_has_twelve_lines_and_loads(tmp_path: Path) -> None:
    (job,) = blocks("yaml")
    assert len(job.splitlines()) == 12
    (tmp_path / "train.py").write_text("")
    (tmp_path / "job.yaml").write_text(job)
    spec = load(tmp_path / "job.yaml", {})
    assert (spec.name, spec.timeouts.total_s) == ("digits", 6 * 3600)


def test_every_job_of_the_docs_loads(tmp_path: Path) -> None:
    found = [
        block
        for page in (ROOT / "docs").glob("*.md")
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), flags=re.DOTALL)
        if block.startswith("name:")
    ]
    assert found
    for number, job in enumerate(found):
        folder = tmp_path / str(number)
        folder.mkdir()
        for program in re.findall(r"^program: (\S+)", job, flags=re.MULTILINE):
            (folder / program).write_text("")
        (folder / "job.yaml").write_text(job)
        load(folder / "job.yaml", {})


def test_the_reference_of_the_keys_is_made_from_their_table() -> None:
    page = (ROOT / "docs" / "job.md").read_text()
    assert insert_reference(page) == page, "make docs"


def test_every_key_is_in_the_reference_once() -> None:
    keys = re.findall(r"^\| `([a-z_.]+)` \|", make_reference(), flags=re.MULTILINE)
    assert len(keys) == len(set(keys))
    for path, known in JOB_KEYS.items():
        assert {f"{path}.{key}" if path else key for key in known.known} <= set(keys)


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="make docs"):
        insert_reference("# A page\n")


def test_the_docs_link_to_what_exists() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readmes_make_targets_exist() -> None:
    targets = [command[1] for command in commands() if command[0] == "make"]
    assert targets == ["demo", "test"]
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.cluster
def test_the_readmes_commands_run(cluster: LocalHadoop) -> None:
    """Every command of the README but make's, in its order, on the cluster of the tests."""
    ran = 0
    for command in commands():
        if command[0] == "make":
            continue
        program = {"tfy": TFY, "python": (sys.executable,)}[command[0]]
        done = subprocess.run(
            [*program, *command[1:]],
            cwd=ROOT,
            env=cluster.environ,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{shlex.join(command)}: {done.stdout}{done.stderr}"
        ran += 1
    assert ran >= 5
