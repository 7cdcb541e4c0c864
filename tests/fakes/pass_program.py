"""Program that runs passes over kernels at Triton's TTGIR stage, without a GPU.

    python pass_program.py '{"loads,dots": {"matmul": ["cuda:90"]}}'

prints one JSON object: by text, kernel and target the insertions and facts of the module.
It is a program of its own so that tests can run it on several Tritons.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import triton
from fakes.pass_kernels import SOURCES
from triton import knobs
from triton._C.libtriton import proton as records
from triton.backends.compiler import GPUTarget

from proton_bench_plugins.instrumentation.passes import Inserter, parse_passes

TARGETS = {
    "cuda:80": GPUTarget("cuda", 80, 32),
    "cuda:90": GPUTarget("cuda", 90, 32),
    "cuda:100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
    "gfx950": GPUTarget("hip", "gfx950", 64),
}
_LOCATION = re.compile(r" loc\(.*\)$|^#loc.*$|\s*\(#loc\d*\)", re.MULTILINE)


class _SeenError(Exception):
    """Ends a compilation after the stage that the passes run in."""


class Rig:
    """Runs passes at the end of the TTGIR stage and ends the compilation there."""

    def __init__(self, passes: str) -> None:
        self.inserter = Inserter(parse_passes(passes))
        self.facts: dict[str, Any] = {}
        self.kernel = ""

    def __call__(
        self, backend=None, stages=None, options=None, language=None, capability=None
    ) -> tuple[str, str]:
        if backend is not None:
            before = stages["ttgir"]
            stages["ttgir"] = lambda source, metadata: self.stage(before(source, metadata))
        return "passes", "passes"

    def stage(self, module: Any) -> Any:
        records.load_dialects(module.context)
        plain = lines(module)
        inserted = self.inserter.insert(module, kernel=self.kernel)
        text = lines(module)
        self.facts = {
            "scopes": [scope.name for scope in inserted.scopes],
            "ops": [scope.op for scope in inserted.scopes],
            "left_out": [scope.name for scope in inserted.left_out],
            "skipped": inserted.skipped,
            "verified": module.verify(),
            "names": [name for _, name in records.get_scope_id_names(module)],
            "ids": [number for number, _ in records.get_scope_id_names(module)],
            "parents": records.get_scope_id_parents(module),
            "records": sum("proton.record" in line for line in text),
            "is_same": plain == [line for line in text if "proton.record" not in line],
            "text": text,
        }
        raise _SeenError


def lines(module: Any) -> list[str]:
    stripped = _LOCATION.sub("", module.str()).splitlines()
    return [line.strip() for line in stripped if line.strip()]


def run(rig: Rig, kernel: str, target: str) -> dict[str, Any]:
    rig.kernel = kernel
    try:
        triton.compile(SOURCES[kernel].ast(), target=TARGETS[target], options={"num_warps": 4})
    except _SeenError:
        return rig.facts
    raise RuntimeError(f"{kernel} on {target} did not reach the stage")


def main(wanted: dict[str, dict[str, list[str]]]) -> None:
    found: dict[str, Any] = {}
    for passes, kernels in wanted.items():
        rig = Rig(passes)
        knobs.runtime.add_stages_inspection_hook = rig
        found[passes] = {
            kernel: {target: run(rig, kernel, target) for target in targets}
            for kernel, targets in kernels.items()
        }
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
