"""Hadoop's configuration files: what core-site.xml and its siblings say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tfy.errors import UnreachableError

SITE_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")


def read_properties(conf_dir: Path) -> Mapping[str, str]:
    """All properties of a configuration directory, a later file over an earlier one."""
    properties: dict[str, str] = {}
    for name in SITE_FILES:
        path = conf_dir / name
        if path.is_file():
            properties.update(_read_file(path))
    return properties


def _read_file(path: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise UnreachableError(f"{path}: not a Hadoop configuration file: {error}") from error
    return {
        (entry.findtext("name") or "").strip(): (entry.findtext("value") or "").strip()
        for entry in root.iter("property")
        if (entry.findtext("name") or "").strip()
    }
