"""Hadoop's configuration files: what core-site.xml and its siblings say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from xml.etree import ElementTree

from tfy.errors import UnreachableError

SITE_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")


_MAX_EXPANSIONS = 20


def read_properties(conf_dir: Path) -> Mapping[str, str]:
    """All properties of a configuration directory, a later file over an earlier one, `${name}` expanded."""
    raw: dict[str, str] = {}
    for name in SITE_FILES:
        path = conf_dir / name
        if path.is_file():
            raw.update(_read_file(path))
    return MappingProxyType({name: _expand(value, raw) for name, value in raw.items()})


def _expand(value: str, properties: Mapping[str, str]) -> str:
    """Hadoop's `${name}`: another property. What is not set stays as it is, as in Hadoop."""
    for _ in range(_MAX_EXPANSIONS):
        expanded = re.sub(
            r"\$\{([^{}$\s]+)\}", lambda found: properties.get(found.group(1), found.group(0)), value
        )
        if expanded == value:
            break
        value = expanded
    return value


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
