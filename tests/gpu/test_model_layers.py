"""Kernels of models on a GPU, below their layers; counts against torch.profiler's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.model.frame import FrameKind
from proton_bench.recording.session.recording import known_session

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
STEPS = 3
TOKENS = (2, 128)


def gpt2() -> Any:
    config = transformers.GPT2Config(n_layer=3, n_embd=128, n_head=4, vocab_size=1000)
    return transformers.GPT2LMHeadModel(config)


def llama() -> Any:
    config = transformers.LlamaConfig(
        num_hidden_layers=3,
        hidden_size=128,
        intermediate_size=256,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=1000,
    )
    return transformers.LlamaForCausalLM(config)


MODELS = {"gpt2": (gpt2, "transformer.h.2.attn (GPT2Attention)")}
MODELS["llama"] = (llama, "model.layers.2.self_attn (LlamaAttention)")


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not torch.cuda.is_available():
        pytest.skip("no GPU that torch can use")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    proton.finalize()


def trainer(model: Any, run: Any = None) -> Callable[[], None]:
    """Return a function that trains a step."""
    tokens = torch.randint(0, 1000, TOKENS, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        (run or model)(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def profile_of(work: Callable[[], None], path: Path, context: str = "layers+ops") -> Any:
    """Record steps that were warmed up before, and return the profile."""
    number = proton.start(path, context=context)
    for _ in range(STEPS):
        work()
    torch.cuda.synchronize()
    profile = known_session(number or 0).profile()
    proton.finalize()
    return profile


def share_below_layers(profile: Any) -> float:
    """Return the share of the time of kernels that a layer stands above."""
    times = profile.inclusive("time (ns)")
    below = outside = 0
    for row in range(len(profile)):
        if profile.kind(row) != FrameKind.KERNEL:
            continue
        above = int(profile.parents[row])
        while above > 0 and profile.kind(above) != FrameKind.LAYER:
            above = int(profile.parents[above])
        if above > 0:
            below += int(times[row])
        else:
            outside += int(times[row])
    return below / (below + outside)


def counted_by_us(profile: Any) -> int:
    """Return the launches of all kernels."""
    counts = profile.inclusive("count")
    rows = range(len(profile))
    return sum(int(counts[row]) for row in rows if profile.kind(row) == FrameKind.KERNEL)


def counted_by_torch(name: str) -> int:
    """Return the launches of all kernels as torch.profiler sees them, for a process of its own.

    A process in which it has run keeps its subscription to CUPTI.
    """
    _, step = prepared(name)
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    return sum(
        event.device_type == torch.autograd.DeviceType.CUDA
        and not event.is_user_annotation
        and not event.name.startswith("Mem")
        for event in profiler.events()
    )


def prepared(name: str) -> tuple[Any, Callable[[], None]]:
    """Return a model and its training step, which ran once."""
    model = MODELS[name][0]().cuda()
    step = trainer(model)
    step()
    return model, step


@pytest.mark.parametrize("name", MODELS)
def test_nearly_all_time_of_a_training_step_stands_below_layers(name: str, tmp_path: Path) -> None:
    _, step = prepared(name)

    profile = profile_of(step, tmp_path / "train")

    assert share_below_layers(profile) >= 0.95


@pytest.mark.parametrize("name", MODELS)
def test_attention_has_both_passes(name: str, tmp_path: Path) -> None:
    _, step = prepared(name)

    profile = profile_of(step, tmp_path / "train")

    paths = [profile.path(row) for row in range(len(profile))]
    own = [path for path in paths if MODELS[name][1] in path]
    assert any("<backward>" in path for path in own)
    assert any("<backward>" not in path and path[-1] != MODELS[name][1] for path in own)


@pytest.mark.parametrize("name", MODELS)
def test_kernels_are_as_many_as_torch_counts(name: str, tmp_path: Path) -> None:
    _, step = prepared(name)
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        theirs = processes.submit(counted_by_torch, name).result()

    assert counted_by_us(profile_of(step, tmp_path / "train")) == theirs


def test_the_kernels_are_those_of_a_session_without_layers(tmp_path: Path) -> None:
    _, step = prepared("gpt2")

    counts = {
        context: counted_by_us(profile_of(step, tmp_path / context, context))
        for context in ("shadow", "layers", "layers+ops")
    }

    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_kernels_of_a_compiled_model_stand_below_its_layers(mode: str, tmp_path: Path) -> None:
    model = gpt2().cuda().eval()
    tokens = torch.randint(0, 1000, TOKENS, device="cuda")
    number = proton.start(tmp_path / "compiled", context="layers+ops")
    compiled = torch.compile(model, mode=mode)
    with torch.no_grad():
        for _ in range(5):  # compiles, warms up, captures, and replays
            torch.compiler.cudagraph_mark_step_begin()
            compiled(input_ids=tokens)
    torch.cuda.synchronize()

    profile = known_session(number or 0).profile()

    names = {name for row in range(len(profile)) for name in profile.path(row)}
    assert MODELS["gpt2"][1] in names
    assert share_below_layers(profile) >= 0.95
