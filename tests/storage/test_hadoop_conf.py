"""Hadoop's configuration files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfy.errors import UnreachableError
from tfy.storage.hadoop_conf import read_properties


def write(path: Path, **properties: str) -> None:
    lines = [
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in properties.items()
    ]
    path.write_text(f"<configuration>{''.join(lines)}</configuration>")


def test_names_in_values_are_expanded(tmp_path: Path) -> None:
    write(tmp_path / "core-site.xml", **{"nn": "nn1:8020", "fs.defaultFS": "hdfs://${nn}", "x": "${not.set}"})
    found = read_properties(tmp_path)
    assert (found["fs.defaultFS"], found["x"]) == ("hdfs://nn1:8020", "${not.set}")


def test_a_value_that_names_itself_ends(tmp_path: Path) -> None:
    write(tmp_path / "core-site.xml", a="${b}", b="${a}")
    assert read_properties(tmp_path)["a"] in ("${a}", "${b}")


def test_a_later_file_wins_and_none_is_needed(tmp_path: Path) -> None:
    assert read_properties(tmp_path) == {}
    write(tmp_path / "core-site.xml", a="1", b="1")
    write(tmp_path / "yarn-site.xml", b="2")
    assert read_properties(tmp_path) == {"a": "1", "b": "2"}


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(UnreachableError, match=r"hdfs-site\.xml: not a Hadoop configuration file"):
        read_properties(tmp_path)
