"""Which cluster is used, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LocalHadoop
from tfy.errors import UnreachableError
from tfy.yarn.hadoop import find_classpath, find_hadoop

CORE_SITE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://${nn.host}:8020</value></property>
<property><name>nn.host</name><value>nn1</value></property>
</configuration>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "core-site.xml").write_text(CORE_SITE)
    (conf / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.hostname</name><value>rm1</value></property>"
        "</configuration>"
    )
    return conf


def make_yarn(folder: Path, script: str) -> str:
    """A `yarn` command that does what `script` says; returns the PATH to find it."""
    folder.mkdir()
    yarn = folder / "yarn"
    yarn.write_text(f"#!/bin/sh\n{script}\n")
    yarn.chmod(0o755)
    return str(folder)


def test_conf_dir_without_yarn_takes_pysparks_jars(site: Path) -> None:
    hadoop = find_hadoop({"HADOOP_CONF_DIR": str(site), "PATH": ""})
    assert hadoop.source == "environment"
    assert hadoop.conf_dir == site
    head, *jars = find_classpath(hadoop, {}).split(":")
    assert head == str(site)
    assert any("hadoop-client-runtime" in jar for jar in jars)
    assert hadoop.default_fs == "hdfs://nn1:8020"


def test_conf_dir_with_yarn_asks_it(site: Path, tmp_path: Path) -> None:
    path = make_yarn(tmp_path / "bin", 'echo "$HADOOP_CONF_DIR:/opt/hadoop/a.jar $*"')
    environ = {"HADOOP_CONF_DIR": str(site), "PATH": path}
    assert find_classpath(find_hadoop(environ), environ) == f"{site}:/opt/hadoop/a.jar classpath --glob"


def test_yarn_that_fails_is_told(site: Path, tmp_path: Path) -> None:
    path = make_yarn(tmp_path / "bin", "echo 'JAVA_HOME is not set' >&2; exit 1")
    environ = {"HADOOP_CONF_DIR": str(site), "PATH": path}
    hadoop = find_hadoop(environ)
    with pytest.raises(UnreachableError, match="exit code 1 and said: JAVA_HOME is not set"):
        find_classpath(hadoop, environ)


def test_wrong_conf_dir_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=r"HADOOP_CONF_DIR is .*/nowhere, which is no folder"):
        find_hadoop({"HADOOP_CONF_DIR": str(tmp_path / "nowhere")})
    with pytest.raises(UnreachableError, match=r"has no core-site\.xml"):
        find_hadoop({"HADOOP_CONF_DIR": str(tmp_path)})


def test_no_hadoop_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError) as caught:
        find_hadoop({"TFY_CLUSTER_DIR": str(tmp_path), "PATH": ""})
    assert caught.value.exit_status == 3
    assert caught.value.hint == "tfy cluster up"
    for said in ("HADOOP_CONF_DIR is not set", "PATH has no `yarn`", str(tmp_path / "state.json")):
        assert said in caught.value.message


@pytest.mark.cluster
def test_local_cluster_is_found(cluster: LocalHadoop) -> None:
    hadoop = find_hadoop(cluster.environ)
    assert hadoop.source == "local"
    assert hadoop.conf_dir == cluster.conf_dir
    assert hadoop.default_fs == cluster.uri
