from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.recording.models.torch_work import read_signature

torch = pytest.importorskip("torch")


def recorded(path: Path, run: Callable[[], object], context: str = "layers+shapes") -> Any:
    session = proton.start(path / "run", context=context, backend="cpu", mode="cpu:depth=0")
    run()
    proton.finalize(session, "proton")
    return proton.open_profile(path / "run.proton")


def flops(profile: Any) -> dict[str, int]:
    names = [name for name in profile.columns if name.startswith("flops")]
    return {name: int(profile.inclusive(name)[0]) for name in names}


def shapes(arguments: Iterable[Any]) -> tuple[tuple[int, ...], ...]:
    """Sizes of tensors that are arguments themselves."""
    return tuple(tuple(each[1]) for each in arguments if isinstance(each, tuple))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.grouped = torch.nn.Conv2d(8, 8, 3, groups=4, bias=False)
        self.transposed = torch.nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.linear = torch.nn.Linear(4, 16)
        self.attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        self.lstm = torch.nn.LSTM(16, 8, batch_first=True)

    def forward(self, x: Any) -> Any:
        x = self.transposed(self.grouped(self.convolution(x))).flatten(2).transpose(1, 2)
        x = self.linear(x)
        x, _ = self.attention(x, x, x)
        x, _ = self.lstm(x)
        return torch.einsum("bij,bkj->bik", x, x).sum()


@pytest.fixture
def net() -> tuple[Any, Any]:
    torch.manual_seed(0)
    return Net(), torch.randn(2, 3, 16, 16)


@pytest.mark.parametrize("training", [False, True])
def test_flops_are_those_of_torchs_own_counter(
    net: tuple[Any, Any], tmp_path: Path, *, training: bool
) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model, x = net

    def step() -> None:
        model(x).backward() if training else model(x)

    with FlopCounterMode(display=False) as counter:
        step()

    assert flops(recorded(tmp_path, step)) == {"flops32": counter.get_total_flops()}


def test_shapes_are_those_of_torchs_own_profiler(net: tuple[Any, Any], tmp_path: Path) -> None:
    model, x = net
    model(x).backward()
    with torch.profiler.profile(record_shapes=True) as profiler:
        model(x).backward()
    events = profiler.profiler.kineto_results.events()
    theirs = Counter(
        (each.name(), tuple(tuple(sizes) for sizes in each.shapes() if sizes))
        for each in events
        if each.name().startswith("aten::")
    )

    profile = recorded(tmp_path, lambda: model(x).backward())

    ours: Counter[tuple[str, Any]] = Counter()
    for row in range(len(profile)):
        variant, count = profile.variant(row), profile.columns["count"]
        if profile.name(row).startswith("aten::") and count.valid[row]:
            read = read_signature(variant.signature) if variant else []
            sizes = tuple(each for each in shapes(read) if each)
            ours[profile.name(row), sizes] += int(count.values[row])
    assert ours == theirs


def test_one_layer_with_two_shapes_is_two_variants(tmp_path: Path) -> None:
    layer = torch.nn.Linear(4, 2)

    profile = recorded(tmp_path, lambda: [layer(torch.ones(rows, 4)) for rows in (3, 5, 3)])

    linear = [row for row in range(len(profile)) if profile.name(row) == "aten::linear"]
    variants = {profile.variant(row).signature: row for row in linear}
    assert set(variants) == {f"f32[{rows},4], f32[2,4], f32[2]" for rows in (3, 5)}
    counts = profile.columns["count"].values
    assert counts[variants["f32[3,4], f32[2,4], f32[2]"]] == 2
    assert flops(profile) == {"flops32": 2 * (3 + 5 + 3) * 4 * 2}


def test_layers_with_two_shapes_are_two_layers_forward_and_backward(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 2))

    def run() -> None:
        for rows in (3, 5, 3):
            model(torch.ones(rows, 4)).sum().backward()

    profile = recorded(tmp_path, run)

    layers = {
        profile.variant(row).signature: row
        for row in range(len(profile))
        if profile.name(row) == "0 (Linear)"
    }
    assert set(layers) == {"f32[3,4]", "f32[5,4]"}
    flops32 = profile.inclusive("flops32")
    twice = 2  # forward, and of the weight
    assert flops32[layers["f32[3,4]"]] == 2 * twice * (2 * 3 * 4 * 2)
    assert flops32[layers["f32[5,4]"]] == twice * (2 * 5 * 4 * 2)


def test_a_layer_has_a_limit_of_variants(tmp_path: Path) -> None:
    layer = torch.nn.Identity()

    profile = recorded(tmp_path, lambda: [layer(torch.ones(size)) for size in range(100)])

    names = [profile.variant(row) for row in range(len(profile)) if profile.name(row) == "Identity"]
    assert len(names) == 65
    assert names[-1].signature == "other"


def test_flops_have_the_width_of_what_is_computed(tmp_path: Path) -> None:
    a = torch.ones(4, 4)

    def run() -> None:
        a.double() @ a.double()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a @ a

    assert flops(recorded(tmp_path, run)) == {"flops64": 128, "flops16": 128}


def test_a_program_that_ends_by_itself_has_flops_of_convolutions(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "x = torch.ones(1, 3, 8, 8, requires_grad=True)\n"
        "torch.nn.functional.conv2d(x, torch.ones(4, 3, 3, 3)).sum().backward()\n"
    )
    command = [sys.executable, "-m", "proton_bench", "-n", "run", "-c", "shapes", str(program)]

    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    once = 2 * 36 * 4 * 3 * 9
    assert flops(proton.open_profile(tmp_path / "run.proton")) == {"flops32": 2 * once}


def test_tensors_without_memory_do_no_work(tmp_path: Path) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def run() -> None:
        torch.ones(4, 4, device="meta") @ torch.ones(4, 4, device="meta")
        with FakeTensorMode():
            torch.ones(4, 4) @ torch.ones(4, 4)
        torch.ones(4, 4) @ torch.ones(4, 4)

    assert flops(recorded(tmp_path, run)) == {"flops32": 128}


def test_a_compiler_that_traces_does_no_work(tmp_path: Path) -> None:
    model = torch.compile(torch.nn.Linear(16, 32), backend="aot_eager")
    x = torch.ones(4, 16)

    def run() -> None:
        for _ in range(3):
            model(x).sum().backward()

    assert flops(recorded(tmp_path, run)) == {"flops32": 3 * 2 * (2 * 4 * 16 * 32)}


def test_a_counter_of_the_program_does_not_see_the_formulas(tmp_path: Path) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    x, weight = torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)
    with FlopCounterMode(display=False) as counter:
        found = flops(recorded(tmp_path, lambda: torch.nn.functional.conv2d(x, weight)))

    assert found == {"flops32": counter.get_total_flops()}


def test_products_into_a_given_tensor_count(tmp_path: Path) -> None:
    a, b = torch.ones(2, 4, 4), torch.ones(4, 4)

    def run() -> None:
        torch.addmm(b[0], b, b, out=torch.empty(4, 4))
        torch.bmm(a, a, out=torch.empty(2, 4, 4))
        torch.baddbmm(a, a, a, out=torch.empty(2, 4, 4))
        torch.mm(b, b, out=torch.empty(4, 4))

    assert flops(recorded(tmp_path, run)) == {"flops32": 128 * (1 + 2 + 2 + 1)}


def test_an_operator_that_a_formula_refuses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from torch.utils.flop_counter import flop_registry

    def refuse(*_shapes: object, out_val: object = None) -> int:
        raise AssertionError(str(out_val))

    monkeypatch.setitem(flop_registry, torch.ops.aten.bmm, refuse)
    a, b = torch.ones(3, 4, 4), torch.ones(4, 4)

    profile = recorded(tmp_path, lambda: (torch.bmm(a, a), b @ b))

    assert flops(profile) == {"flops32": 128}
    assert "aten::bmm" in capfd.readouterr().err


def test_flops_given_to_a_scope_count_instead(tmp_path: Path) -> None:
    a = torch.ones(4, 4)

    def run() -> None:
        with proton.scope("mine", {"flops32": 100.0}):
            a @ a
        a @ a

    profile = recorded(tmp_path, run)

    assert flops(profile) == {"flops32": 228}
    assert profile.inclusive("derived_flops")[0] == 128


def test_more_shapes_than_variants_keep_their_flops(tmp_path: Path) -> None:
    a = torch.ones(1, 8)

    profile = recorded(tmp_path, lambda: [a @ torch.ones(8, size) for size in range(1, 101)])

    assert flops(profile) == {"flops32": sum(16 * size for size in range(1, 101))}
    signatures = {each.signature for each in profile.variants}
    assert "other" in signatures


def test_without_the_source_nothing_is_read(tmp_path: Path) -> None:
    profile = recorded(tmp_path, lambda: torch.ones(4, 4) @ torch.ones(4, 4), context="ops")

    assert flops(profile) == {}
    assert profile.variants == ()


@pytest.mark.parametrize(
    ("signature", "arguments"),
    [
        ("", []),
        ("f32[], bf16[2,3]", [("f32", []), ("bf16", [2, 3])]),
        ("f32[2], None, [1,1], True, 0.5", [("f32", [2]), None, [1, 1], True, 0.5]),
        ("[f32[2], f32[3]], 1", [[("f32", [2]), ("f32", [3])], 1]),
    ],
)
def test_a_signature_is_read(signature: str, arguments: list[Any]) -> None:
    assert read_signature(signature) == arguments


def test_a_cut_signature_is_refused() -> None:
    with pytest.raises((ValueError, SyntaxError)):
        read_signature("[f32[2], and 9 more]")
