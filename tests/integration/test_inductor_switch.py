"""torch's own switch for Proton, TORCHINDUCTOR_TRITON_PROTON_PROFILING, on our package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fakes.tritons import run_on

pytest.importorskip("proton_bench._native")
pytest.importorskip("triton")

HAS_SWITCH = (
    find_spec("torch") is not None
    and Path(find_spec("torch").origin or "", "..", "_inductor", "runtime", "proton_utils.py")
    .resolve()
    .exists()
)
pytestmark = pytest.mark.skipif(not HAS_SWITCH, reason="this torch has no switch for Proton")

TRACE = Path(__file__).parents[1] / "data" / "upstream" / "intra-default-trace.chrome_trace.gz"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("inductor")
    return run_on("", folder / "cache", "inductor_program.py", str(folder), str(TRACE))


def test_generated_modules_start_one_session_between_them(generated: dict[str, Any]) -> None:
    (((name,), options),) = generated["started"]

    assert name.endswith("traces/inductor")
    assert options == {"backend": "instrumentation", "data": "trace"}
    assert generated["finish"]


def test_every_name_that_generated_code_uses_is_ours_too(generated: dict[str, Any]) -> None:
    assert generated["names"] == [
        *("_ProtonHookManager.active_hooks", "pl.enable_semantic", "pl.enter_scope"),
        *("pl.exit_scope", "proton.finalize", "proton.start"),
    ]


def test_generated_kernels_get_records_of_their_scope(generated: dict[str, Any]) -> None:
    kernel = generated["kernel"]

    assert generated["plain"] == []
    assert generated["recorded"] == [["start", kernel], ["end", kernel]]


def test_torch_shows_programs_on_their_cores_from_a_trace(generated: dict[str, Any]) -> None:
    whole = generated["per_program"]["inductor.trace.json.gz"]
    cores = {each["args"]["name"] for each in whole if each["name"] == "process_name"}
    programs = [each for each in whole if each.get("cat") == "cta"]

    assert {each["name"] for each in programs} == {"CTA0", "CTA1", "CTA2", "CTA3"}
    assert all(core.startswith("scaled_add Core") for core in cores)
    assert all(each["dur"] > 0 for each in programs)


def test_torch_groups_the_warps_of_a_core(generated: dict[str, Any]) -> None:
    whole = generated["by_core"]["inductor.trace.json.gz"]

    assert {each["tid"].split(" (")[0] for each in whole} == {
        f"CTA{program} warp {warp}" for program in range(4) for warp in range(4)
    }
    assert {each["pid"].rpartition(" ")[0] for each in whole} == {"scaled_add"}
