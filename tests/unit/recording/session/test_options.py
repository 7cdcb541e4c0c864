"""Options of a session, checked before anything is switched on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends

from proton_bench.errors import UsageError
from proton_bench.mode import PCSampling
from proton_bench.plugin import ModeSpec
from proton_bench.recording.kernels.hooks import Hook
from proton_bench.recording.session.options import SessionOptions, plan_capture, session_path


def test_relative_name_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert session_path("runs/../x") == str(tmp_path / "x")
    assert session_path(Path("x")) == str(tmp_path / "x")


@pytest.mark.parametrize("name", ["", "-"])
def test_empty_name_and_dash_mean_stdout(name: str) -> None:
    assert session_path(name) == "-"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "depth=1"}, "these are options of 'cpu': write cpu:depth=1"),
        ({"mode": "default:cta=1"}, "unsupported mode: default:cta=1; choose one of cpu"),
    ],
)
def test_without_a_gpu_errors_say_why_the_backend_is_cpu(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    for vendor in ("CUDA", "HIP", "ROCR"):
        monkeypatch.setenv(f"{vendor}_VISIBLE_DEVICES", "")

    with pytest.raises(UsageError, match=re.escape(said)) as chosen:
        plan_capture(SessionOptions(name="x", **options))
    with pytest.raises(UsageError, match=re.escape(said.removesuffix(". "))) as named:
        plan_capture(SessionOptions(name="x", backend="cpu", **options))

    reason = "Backend 'cpu' was chosen because no GPU was found: make one visible"
    assert reason in str(chosen.value)
    assert reason not in str(named.value)


@pytest.mark.parametrize("name", [3, b"x", None, "a\0b"])
def test_name_that_is_not_a_path_is_refused(name: Any) -> None:
    with pytest.raises(UsageError, match="session name"):
        session_path(name)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"context": "stack"}, "Unknown context source: stack; choose from: shadow, python"),
        ({"context": None}, "Unknown context source: None"),
        ({"data": "list"}, "Unknown data: list; choose from: tree, trace"),
        ({"data": "trace"}, "does not record data='trace'; choose from: tree"),
        ({"mode": "turbo"}, "unsupported mode: turbo; choose one of slow, fast"),
        ({"mode": "slow:speed=1"}, "no option 'speed'; its options: interval"),
        ({"backend": 3}, "backend 3 is not a text"),
        ({"hook": "inductor"}, "Unsupported hook: 'inductor'; choose from: triton"),
        ({"hook": 3}, "Unsupported hook: 3"),
    ],
)
def test_what_is_unknown_is_named_with_the_choices(
    fakes: FakeBackends, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=r"choose|options|not a text|Unsupported") as refused:
        plan_capture(SessionOptions(name="x", **options))

    assert text in str(refused.value)
    assert fakes.calls == []


def test_unknown_backend_is_named_with_the_choices() -> None:
    with pytest.raises(UsageError, match=r"Unknown profiler: acme; choose backends from: .*cpu"):
        plan_capture(SessionOptions(name="x", backend="acme"))


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"backend": "cuptii"}, "cupti"),
        ({"context": "ops+layrs"}, "layers"),
        ({"data": "trase"}, "trace"),
        ({"hook": "triton_"}, "triton"),
    ],
)
def test_a_misspelt_word_is_named_with_the_right_one(options: dict[str, Any], meant: str) -> None:
    with pytest.raises(UsageError, match=rf"did you mean '{meant}'\?$"):
        plan_capture(SessionOptions(name="x", **options))


def test_context_and_backend_ignore_case(fakes: FakeBackends) -> None:
    plan = plan_capture(SessionOptions(name="x", context="PYTHON", backend="Gpu+CPU", data="TREE"))

    assert plan.context == "python"
    assert plan.backend_names == "gpu+cpu"


def test_mode_may_be_an_object(fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = fakes.make("gpu")
    object.__setattr__(backend, "modes", (ModeSpec("pcsampling", {"interval": "cycles"}),))
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", lambda _: (backend,))

    plan = plan_capture(SessionOptions(name="x", mode=PCSampling(interval=64)))

    assert plan.modes[0].options == {"interval": "64"}


def test_wall_time_is_recorded_where_one_backend_asks(
    fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, cpu = fakes.make("gpu"), fakes.make("cpu", records_wall=True)
    resolve = {"gpu": (gpu,), "gpu+cpu": (gpu, cpu)}.get
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", resolve)

    assert plan_capture(SessionOptions(name="x", backend="gpu+cpu")).records_wall
    assert not plan_capture(SessionOptions(name="x", backend="gpu")).records_wall


def test_hook_object_is_taken_as_it_is(fakes: FakeBackends) -> None:
    class Silent(Hook):
        def init_handle(
            self,
            module: Any,
            function: Any,
            name: str,
            metadata_group: Mapping[str, str],
            hash: str,
        ) -> None: ...
        def enter(self, metadata: Any) -> None: ...
        def exit(self, metadata: Any) -> None: ...
        def activate(self) -> None: ...
        def deactivate(self) -> None: ...

    hook = Silent()

    assert plan_capture(SessionOptions(name="x", hook=hook)).hook is hook


def test_hook_of_a_plugin_must_be_a_hook(
    fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "proton_bench.recording.session.options.launch_hooks", lambda: {"odd": dict}
    )

    with pytest.raises(UsageError, match="'odd' made a dict"):
        plan_capture(SessionOptions(name="x", hook="odd"))
