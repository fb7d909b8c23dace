"""Zip archives that are the same bytes for the same content, whoever packs them when."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfy.errors import SpecError

# The oldest time that a zip can hold: file times would make two packings differ.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def walk_files(folder: Path) -> list[Path]:
    """All files below a folder, sorted, those behind links too.

    Compiled Python and hidden folders (`.git`, caches) stay behind. Raises `SpecError` for a link that
    leads nowhere or in a circle, OSError where a folder cannot be read.
    """
    return sorted(_walk(folder, (folder.resolve(),)))


def _walk(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            if entry.resolve() in above:
                raise SpecError(f"{entry}: a link that leads in a circle cannot be packed")
            yield from _walk(entry, (*above, entry.resolve()))
        elif entry.is_symlink() and not entry.exists():
            raise SpecError(f"{entry}: a link that leads nowhere cannot be packed")
        elif entry.is_file() and entry.suffix != ".pyc":
            yield entry


def pack(archive: Path, files: Iterable[tuple[Path, str]]) -> None:
    """Writes a zip of (file, name inside) pairs. Executable bits are kept."""
    with zipfile.ZipFile(archive, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path, name in sorted(files, key=lambda pair: pair[1]):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            packed.writestr(entry, path.read_bytes())
