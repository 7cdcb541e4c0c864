from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.naming.layers import equal_layers, fold_layers, fold_steps
from proton_bench.analysis.naming.nested import IMPORTS_NAME, fold_nested
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

LAYER, KERNEL = FrameKind.LAYER, FrameKind.KERNEL


TIME = "time (ns)"


def transformer(*, blocks: int = 3, experts: int = 2) -> Profile:
    builder = ProfileBuilder()
    root = builder.add(0, " (GPT2LMHeadModel)", LAYER)
    for block in range(blocks):
        path = f"transformer.h.{block}"
        above = builder.add(root, f"{path} (GPT2Block)", LAYER)
        attention = builder.add(above, f"{path}.attn (GPT2Attention)", LAYER)
        builder.add(attention, "flash", KERNEL, metrics={TIME: 10 + block, "count": 1})
        mlp = builder.add(above, f"{path}.mlp (MoE)", LAYER)
        for expert in range(experts):
            each = builder.add(mlp, f"{path}.mlp.experts.{expert} (Expert)", LAYER)
            builder.add(each, "gemm", KERNEL, metrics={TIME: 2, "count": 1})
    norm = builder.add(root, "transformer.ln_f (LayerNorm)", LAYER)
    builder.add(norm, "norm", KERNEL, metrics={TIME: 1, "count": 1})
    return builder.build()


def named(profile: Profile) -> dict[tuple[str, ...], int]:
    values = profile.inclusive(TIME).tolist()
    return {profile.path(row): values[row] for row in range(len(profile))}


def siblings(*names: str) -> list[str]:
    """Return the names of these layers below one model, folded."""
    builder = ProfileBuilder()
    root = builder.add(0, "model (Model)", LAYER)
    for name in names:
        builder.add(builder.add(root, name, LAYER), "k", KERNEL, metrics={TIME: 1})
    folded = fold_layers(builder.build())
    return [folded.name(row) for row in folded.children(1)]


def test_equal_blocks_are_one_row_with_merged_rows_below() -> None:
    model = (" (GPT2LMHeadModel)",)
    block = (*model, "transformer.h.* (GPT2Block) x3")
    mlp = (*block, "transformer.h.*.mlp (MoE)")
    experts = (*mlp, "transformer.h.*.mlp.experts.* (Expert) x2")

    assert named(fold_layers(transformer())) == {
        (): 46,
        model: 46,
        block: 45,
        (*block, "transformer.h.*.attn (GPT2Attention)"): 33,
        (*block, "transformer.h.*.attn (GPT2Attention)", "flash"): 33,
        mlp: 12,
        experts: 12,
        (*experts, "gemm"): 12,
        (*model, "transformer.ln_f (LayerNorm)"): 1,
        (*model, "transformer.ln_f (LayerNorm)", "norm"): 1,
    }


def test_layers_of_another_class_stay_apart() -> None:
    assert siblings("h.0 (Block)", "h.1 (Block)", "h.2 (Wide)") == ["h.* (Block) x2", "h.2 (Wide)"]


def test_layers_that_differ_in_two_numbers_fold_where_most_agree() -> None:
    names = ["s.0.b.0 (B)", "s.0.b.1 (B)", "s.0.b.2 (B)", "s.1.b.0 (B)"]

    assert siblings(*names) == ["s.0.b.* (B) x3", "s.1.b.0 (B)"]


def test_numbers_within_a_word_are_other_attributes() -> None:
    names = ["conv1 (Conv2d)", "conv2 (Conv2d)", "layer1 (Sequential)"]

    assert siblings(*names) == names


def test_layers_below_different_rows_are_not_one() -> None:
    builder = ProfileBuilder()
    for scope, number in (("encode", 0), ("decode", 1)):
        above = builder.add(0, scope, FrameKind.SCOPE)
        layer = builder.add(above, f"h.{number} (Block)", LAYER)
        builder.add(layer, "k", KERNEL, metrics={TIME: 1})
    profile = builder.build()

    assert fold_layers(profile) is profile


def test_profiles_without_layers_and_odd_names_do_not_change() -> None:
    assert siblings("0", "1", "h.0", "(B)") == ["0", "1", "h.0", "(B)"]
    builder = ProfileBuilder()
    builder.add(0, "h.0 (Block)", FrameKind.SCOPE, metrics={TIME: 1})
    profile = builder.build()
    assert fold_layers(profile) is profile


PARTS = st.sampled_from(["h", "0", "1", "2", "mlp"])


LAYERS = st.tuples(st.lists(PARTS, min_size=1, max_size=4).map(".".join), st.sampled_from("AB"))


@st.composite
def models(draw: st.DrawFn) -> Profile:
    builder = ProfileBuilder()
    for row in range(draw(st.integers(1, 25))):
        parent = draw(st.integers(0, row))
        if draw(st.booleans()):
            path, class_ = draw(LAYERS)
            builder.add(parent, f"{path} ({class_})", LAYER)
        else:
            builder.add(parent, "k", KERNEL, metrics={TIME: draw(st.integers(0, 100))})
    return builder.build()


@given(models())
def test_totals_of_kernels_and_classes_are_what_they_were(profile: Profile) -> None:
    folded = fold_layers(profile)
    folded.self_check()

    assert totals(folded) == totals(profile)
    assert int(folded.depths().max()) == int(profile.depths().max())


def totals(profile: Profile) -> dict[tuple[str, ...], int]:
    """Return the own times by the classes of the layers above."""
    found: dict[tuple[str, ...], int] = {}
    column = profile.columns.get(TIME)
    for row in range(len(profile)):
        if column is not None and column.valid[row]:
            path = tuple(name.partition("(")[2].partition(")")[0] for name in profile.path(row))
            found[path] = found.get(path, 0) + int(column.values[row])
    return found


def test_deep_and_wide_models_cost_little() -> None:
    builder = ProfileBuilder()
    above = 0
    path = "m"
    for _ in range(400):
        path += ".0"
        above = builder.add(above, f"{path} (B)", LAYER)
        builder.add(above, f"{path}.1 (B)", LAYER, metrics={TIME: 1})
    for number in range(20_000):
        builder.add(0, f"h.{number} (B)", LAYER, metrics={TIME: 1})
    profile = builder.build()
    started = time.process_time()

    folded = fold_layers(profile)

    assert time.process_time() - started < 3
    assert folded.name(len(folded) - 1) == "h.* (B) x20000"


def test_equal_layers_are_found_among_names_of_siblings() -> None:
    names = ["h.0 (Block)", "ln (Norm)", "h.1 (Block)", "h.2 (Other)", "step", "conv1 (C)"]

    assert equal_layers(names) == [[0, 2]]


def steps(*names: str) -> Profile:
    """Return scopes of these names, each with two rows of work below it."""
    builder = ProfileBuilder()
    for name in names:
        scope = builder.add(0, name, FrameKind.SCOPE)
        for work, took in (("gemm", 30), ("relu", 4)):
            builder.add(scope, work, FrameKind.KERNEL, metrics={"time (ns)": took})
    return builder.build()


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (("ProfilerStep#11", "ProfilerStep#12"), "ProfilerStep#* x2"),
        (("Epoch 2", "Epoch 40", "Epoch 41"), "Epoch * x3"),
        (("part 0", "part 1", "part 2", "part 9"), "part * x4"),
        (("step3", "step4"), "step* x2"),
        (("TrainStep9", "TrainStep10"), "TrainStep* x2"),
        (("iter[4]", "iter[8]", "iter[12]"), "iter[*] x3"),
    ],
)
def test_numbered_steps_are_one_row(names: tuple[str, ...], folded: str) -> None:
    profile = fold_steps(steps(*names))

    assert [profile.name(row) for row in range(1, len(profile))] == [folded, "gemm", "relu"]
    assert profile.inclusive("time (ns)").tolist()[1:3] == [34 * len(names), 30 * len(names)]


@pytest.mark.parametrize(
    "names",
    [
        ("matmul 512", "matmul 1024", "matmul 2048"),
        ("conv1", "conv2"),
        ("lr=0.1", "lr=0.2"),
        ("iter_7",),
        ("load", "save"),
        ("rank 0", "rank 1", "rank 2"),  # as `merge --by` names processes
        ("n3 process 71", "n3 process 72"),
    ],
)
def test_scopes_with_other_numbers_stay(names: tuple[str, ...]) -> None:
    profile = fold_steps(steps(*names))

    assert [profile.name(row) for row in profile.children(0)] == [*names]


def test_steps_of_folded_epochs_are_folded_together() -> None:
    builder = ProfileBuilder()
    for epoch in (1, 2):
        above = builder.add(0, f"epoch {epoch}", FrameKind.SCOPE)
        for step in (0, 1, 2):
            builder.add(above, f"step {step}", FrameKind.SCOPE, metrics={"time (ns)": 5})

    profile = fold_steps(builder.build())

    assert [profile.name(row) for row in (1, 2)] == ["epoch * x2", "step * x3"]
    assert profile.inclusive("time (ns)").tolist() == [30, 30, 30]


def test_names_of_uncounted_steps_do_not_say_how_many_there_were() -> None:
    found = [
        fold_steps(steps(*(f"step {number}" for number in numbers)), counted=False)
        for numbers in ((7,), (104, 105))
    ]

    assert [profile.name(1) for profile in found] == ["step *", "step *"]


LIBRARY = "/usr/lib/python3.12/site-packages"


def sampled(*paths: tuple[str, ...]) -> Profile:
    """Return a profile whose host was seen once at the end of each path, for a microsecond."""
    builder = ProfileBuilder()
    rows: dict[tuple[str, ...], int] = {(): 0}
    for path in paths:
        for depth, name in enumerate(path):
            place = path[: depth + 1]
            if place not in rows:
                rows[place] = builder.add(rows[place[:-1]], name, FrameKind.PYTHON)
        row = rows[path]
        builder.set(row, "host_wall (ns)", 1000)
    return builder.build()


def names(profile: Profile) -> list[str]:
    return [profile.name(row) for row in range(1, len(profile))]


def test_imports_anywhere_are_one_row() -> None:
    main = ("<not recorded>", "/run/fit.py:4@<module>")
    lazy = ("<not recorded>", "/run/fit.py:30@<module>", "/run/fit.py:9@load")
    profile = sampled(
        (*main, f"{LIBRARY}/jax/__init__.py:7@<module>", f"{LIBRARY}/jax/core.py:70@register"),
        (*main, f"{LIBRARY}/jax/__init__.py:8@<module>"),
        (*lazy, "/run/data.py:1@<module>"),
        lazy,
        ("<not recorded>", "/run/fit.py:31@<module>"),
    )

    folded = fold_nested(profile)

    assert names(folded)[0] == "<not recorded>"
    assert names(folded).count(IMPORTS_NAME) == 1
    assert not any(LIBRARY in name or "data.py" in name for name in names(folded))
    row = names(folded).index(IMPORTS_NAME) + 1
    assert folded.inclusive("host_wall (ns)")[[0, row]].tolist() == [5000, 3000]


@pytest.mark.parametrize(
    "runner",
    ["<frozen runpy>:88@_run_code", f"{LIBRARY}/IPython/core/interactiveshell.py:3701@run_code"],
)
def test_a_program_that_another_one_runs_is_no_import(runner: str) -> None:
    profile = sampled(("<not recorded>", runner, "/run/fit.py:4@<module>", "/run/fit.py:2@step"))

    assert names(fold_nested(profile)) == names(profile)


def test_recursion_is_one_row_with_its_levels() -> None:
    walk = "/run/tree.py:12@walk"
    profile = sampled(
        ("<not recorded>", *[walk] * 7, "/run/tree.py:13@leaf"),
        ("<not recorded>", *[walk] * 3, "/run/tree.py:13@leaf"),
        ("<not recorded>", walk),
    )

    folded = fold_nested(profile)

    assert names(folded) == ["<not recorded>", f"{walk} [7 levels]", "/run/tree.py:13@leaf"]
    assert folded.inclusive("host_wall (ns)").tolist() == [3000, 3000, 3000, 2000]
    assert names(fold_nested(profile, counted=False))[1] == walk


def test_code_that_a_library_makes_is_part_of_the_frame_that_runs_it() -> None:
    make = "/usr/lib/python3.12/dataclasses.py:433@_create_fn"
    profile = sampled(
        ("<not recorded>", "/run/a.py:3@f", make, "<string>:0@<module>"),
        ("<not recorded>", "/run/a.py:5@g", "<string>:1@<module>"),
    )

    folded = fold_nested(profile)

    assert names(folded) == [
        *("<not recorded>", "/run/a.py:3@f", make),
        *("/run/a.py:5@g", "<string>:1@<module>"),
    ]


def test_kernels_of_one_name_below_each_other_stay() -> None:
    builder = ProfileBuilder()
    outer = builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1})
    builder.add(outer, "k", FrameKind.KERNEL, metrics={"count": 1})

    assert len(fold_nested(builder.build())) == 3
