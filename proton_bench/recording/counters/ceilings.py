"""What the units of a GPU reach at best, as fractions of their peaks.

``proton doctor --calibrate`` measures them once per GPU and driver and keeps them in the user's
cache folder. A run with counters writes them into its provenance, so that readers need no cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proton_bench.model.metrics.counter_columns import USUAL_CEILINGS, is_ceiling
from proton_bench.support.files import write_file

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def ceiling_file(name: str, driver: str) -> Path:
    """Return the file of a GPU.

    Args:
        name: Name of the GPU, as its driver says.
        driver: Version of the driver.
    """
    import platformdirs

    stem = _UNSAFE.sub("_", f"{name}-{driver}")
    return platformdirs.user_cache_path("proton_bench") / "ceilings" / f"{stem}.json"


def load_ceilings(file: Path) -> dict[str, float]:
    """Return the measured fractions by unit, {} where none were measured."""
    try:
        said = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return _plausible(said) if isinstance(said, dict) else {}


def store_ceilings(file: Path, measured: Mapping[str, float]) -> dict[str, float]:
    """Keep the measured fractions that can be true, and return them.

    Raises:
        OutputError: The file cannot be written.
        OSError: Its folder cannot be made.
    """
    kept = _plausible(measured)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, json.dumps(kept, indent=1) + "\n")
    return kept


def ceiling_facts(gpus: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``ceilings``, fractions by unit, and ``ceilings_measured``, the units measured here.

    Args:
        gpus: Facts of GPUs, as `gpu_facts` returns them; the first one decides.
    """
    gpu = gpus[0] if gpus else {}
    name, driver = gpu.get("name"), gpu.get("driver")
    measured = load_ceilings(ceiling_file(name, driver)) if name and driver else {}
    return {"ceilings": {**USUAL_CEILINGS, **measured}, "ceilings_measured": sorted(measured)}


def _plausible(said: Mapping[str, Any]) -> dict[str, float]:
    return {unit: said[unit] for unit in USUAL_CEILINGS if unit in said and is_ceiling(said[unit])}
