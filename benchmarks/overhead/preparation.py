"""Prepares libraries, environment and folders before the first process starts."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.overhead.floor import build
from benchmarks.overhead.runner import ROOT, Setting

CACHES = ROOT / "build" / "overhead" / "caches"
_PATTERNS = {
    "triton": ("triton", "backends/nvidia/lib/cupti/libcupti.so*"),
    "nvidia": ("nvidia", "cu*/lib/libcupti.so*"),
}


def find_cupti(which: str) -> Path:
    """Return the libcupti that all tools but torch's use.

    Args:
        which: "triton" for the one of Triton's wheel, "nvidia" for that of NVIDIA's, or a path.

    Raises:
        SystemExit: It was not found.
    """
    if which not in _PATTERNS:
        path = Path(which).resolve()
        if not path.is_file():
            raise SystemExit(f"--cupti {which}: no such file; give a path, triton or nvidia")
        return path
    package, pattern = _PATTERNS[which]
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob(pattern)):
            return path.resolve()
    raise SystemExit(f"package {package} has no {pattern}; name libcupti by --cupti PATH")


def setting_of(options: argparse.Namespace, folder: Path) -> Setting:
    """Build what the measurement needs and return its settings.

    Args:
        options: Command line.
        folder: Where the floor is built.
    """
    setting = Setting(
        "cpu",
        environment=_environment(),
        blocks=options.blocks,
        limit_s=options.limit,
        apart=options.apart,
    )
    if options.dry:
        return _on_doubles(setting, folder)
    cupti = find_cupti(options.cupti)
    link = folder / "cupti"
    link.mkdir()
    (link / "libcupti.so").symlink_to(cupti)
    libraries = {
        "PROTON_BENCH_CUPTI_LIB": str(cupti),
        "TRITON_CUPTI_LIB_PATH": str(link),  # upstream's names a folder
    }
    return _with(replace(setting, kind="cuda", cupti=str(cupti)), folder, libraries)


def _environment() -> dict[str, str]:
    for name in ("inductor", "triton"):
        (CACHES / name).mkdir(parents=True, exist_ok=True)
    path = [str(ROOT), str(ROOT / "plugins"), os.environ.get("PYTHONPATH", "")]
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(CACHES / "inductor"),
        "TRITON_CACHE_DIR": str(CACHES / "triton"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no child processes that stay alive
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }


def _on_doubles(setting: Setting, folder: Path) -> Setting:
    sys.path.append(str(ROOT / "tests"))
    from fakes.doubles import NoCompilerError, doubles

    try:
        fakes = doubles(ROOT / "build" / "doubles")
    except NoCompilerError:
        return setting
    setting = replace(setting, kind="double", cupti=str(fakes.cupti))
    return _with(setting, folder, fakes.environment())


def _with(setting: Setting, folder: Path, libraries: Mapping[str, str]) -> Setting:
    environment = {**libraries, **(setting.environment or {})}
    return replace(setting, floor=str(build(folder)), environment=environment)
