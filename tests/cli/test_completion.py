"""What a shell offers, and that it is quiet where nothing can be offered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import LocalHadoop
from tests.views import make_view
from tests.web import Answer, serve
from tfy.cli.complete import offer_jobs
from tfy.cli.completion import SHELLS
from tfy.states import ApplicationState

TFY = (sys.executable, "-m", "tfy")
RUNNING = replace(make_view().application, id="application_1_2", tags=("tfy", "tfy:0d3d1c2e-1"))
ENDED = make_view(ApplicationState.FINISHED, "failed").application
OTHER = replace(ENDED, id="application_1_3", name="other")


def words(incomplete: str) -> list[str]:
    return [item.value for item in offer_jobs([RUNNING, ENDED, OTHER], incomplete)]


def test_names_come_once_and_ids_where_one_is_begun() -> None:
    assert words("") == ["digits", "other"]
    assert words("d") == ["digits"]
    assert words("app") == ["application_1_2", "application_1_1", "application_1_3"]
    assert words("0d3") == ["0d3d1c2e-1"]
    assert words("x") == []


def test_offers_say_what_they_are() -> None:
    offers = {item.value: item.help for item in offer_jobs([RUNNING, ENDED], "")}
    assert offers == {"digits": "running, application_1_2"}
    assert offer_jobs([ENDED], "app")[0].help == "digits, failed"


def write_site(folder: Path, **settings: str) -> None:
    """Hadoop's configuration, of one whose HDFS is away."""
    form = "<property><name>{}</name><value>{}</value></property>"
    entries = "".join(form.format(name.replace("_", "."), value) for name, value in settings.items())
    core = form.format("fs.defaultFS", "hdfs://127.0.0.1:1")
    (folder / "core-site.xml").write_text(f"<configuration>{core}</configuration>")
    (folder / "yarn-site.xml").write_text(f"<configuration>{entries}</configuration>")


def complete(words: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Asks as the script of `tfy completion bash` does, with the cursor behind `words`."""
    asking = {"_TFY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code = 'from tfy.cli import main; main(prog_name="tfy")'
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environ, **asking},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("verb", ["status", "kill", "wait"])
def test_without_a_cluster_nothing_is_offered_or_said(verb: str, tmp_path: Path) -> None:
    done = complete(f"tfy {verb} d", {**os.environ, "HADOOP_CONF_DIR": str(tmp_path / "nowhere")})
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_cluster_that_does_not_answer_is_no_noise(tmp_path: Path) -> None:
    write_site(tmp_path, yarn_resourcemanager_webapp_address="127.0.0.1:1")
    done = complete("tfy status d", {**os.environ, "HADOOP_CONF_DIR": str(tmp_path)})
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize("words", ["tfy status d", "tfy logs digits ", "tfy logs application_1_0001 w"])
def test_no_java_is_started_where_rest_refuses(words: str, tmp_path: Path) -> None:
    java, started = tmp_path / "bin" / "java", tmp_path / "started"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ntouch {started}\n")
    java.chmod(0o755)
    with serve(lambda _path: Answer(401)) as web:
        address = web.address.removeprefix("http://")
        write_site(
            tmp_path, yarn_resourcemanager_webapp_address=address, yarn_resourcemanager_address=address
        )
        environ = {"HADOOP_CONF_DIR": str(tmp_path), "JAVA_HOME": str(tmp_path)}
        done = complete(words, {**os.environ, **environ})
        assert web.asked
    assert (done.stdout.strip(), done.stderr) == ("", "")
    assert not started.exists()


def test_verbs_are_offered() -> None:
    assert complete("tfy st", dict(os.environ)).stdout.split() == ["plain,status"]


@pytest.mark.cluster
def test_the_cluster_is_asked_quietly(cluster: LocalHadoop) -> None:
    done = complete("tfy status ", cluster.environ)
    assert done.stderr == ""
    assert all(line.startswith("plain,") for line in done.stdout.splitlines() if line)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one(shell: str, tmp_path: Path) -> None:
    done = subprocess.run([*TFY, "completion", shell], capture_output=True, text=True, timeout=60, check=True)
    assert f"_TFY_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell) is None:
        return
    script = tmp_path / "tfy-completion"
    script.write_text(done.stdout)
    subprocess.run([shell, "-n", str(script)], timeout=60, check=True)
