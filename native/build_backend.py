"""The build backend: scikit-build-core, with editable installs that pytest leaves alone.

pytest rewrites the asserts of modules that a package with a plugin lists, and warns of those that
were imported before. The module that finds the sources of an editable install is one of them, so
that every project whose warnings are errors could not start pytest.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403 - the other hooks of a backend

_FINDER = re.compile(r"_editable_\w+\.py")
# pytest looks for this word.
_DOCSTRING = b'"""Finds the sources of an editable install. PYTEST_DONT_REWRITE"""\n'


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build an editable wheel, whose finder pytest does not rewrite."""
    name = _build.build_editable(wheel_directory, config_settings, metadata_directory)
    _mark_finder(Path(wheel_directory, name))
    return name


def _mark_finder(wheel: Path) -> None:
    """Give the finder in a wheel a docstring, and the list of files its new hash."""
    with zipfile.ZipFile(wheel) as archive:
        files = {each: archive.read(each) for each in archive.infolist()}
    lines = {}
    for each in files:
        if _FINDER.fullmatch(each.filename):
            files[each] = content = _DOCSTRING + files[each]
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            lines[each.filename] = f"{each.filename},sha256={digest.decode()},{len(content)}"
    for each in files:
        if each.filename.endswith(".dist-info/RECORD"):
            listed = files[each].decode().splitlines()
            files[each] = "".join(f"{lines.get(_file_in(it), it)}\n" for it in listed).encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in files.items():
            archive.writestr(each, content)


def _file_in(line: str) -> str:
    return line.partition(",")[0]
