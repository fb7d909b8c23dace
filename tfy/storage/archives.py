"""Zip archives that are the same bytes for the same content, whoever packs them when."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

# The oldest time that a zip can hold: file times would make two packings differ.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def walk_files(folder: Path) -> list[Path]:
    """All files below a folder, sorted; compiled Python and hidden caches stay behind."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )


def pack(archive: Path, files: Iterable[tuple[Path, str]]) -> None:
    """Writes a zip of (file, name inside) pairs. Executable bits are kept."""
    with zipfile.ZipFile(archive, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path, name in sorted(files, key=lambda pair: pair[1]):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            packed.writestr(entry, path.read_bytes())
