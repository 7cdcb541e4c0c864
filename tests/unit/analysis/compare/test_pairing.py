from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fakes.runs import GPU, Launched, profile_of

from proton_bench.analysis.compare.pairing import Origins, PairedTree, RowState, pair
from proton_bench.analysis.compare.run_rows import Identity
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

TIME = "time (ns)"


def paired(
    base: Sequence[Launched] | Profile, new: Sequence[Launched] | Profile, **identity: bool
) -> PairedTree:
    sides = [each if isinstance(each, Profile) else profile_of(*each) for each in (base, new)]
    return pair(sides[:1], sides[1:], Identity(**identity), weight=TIME)


def states(tree: PairedTree) -> dict[str, str]:
    return {
        "/".join(tree.path(row)): RowState(tree.states[row]).name for row in range(1, len(tree))
    }


def test_rows_of_one_side_are_new_or_removed() -> None:
    tree = paired([("s/a", 5, 1, "")], [("s/b", 50, 3, "")])

    assert states(tree) == {"s": "MATCHED", "s/a": "REMOVED", "s/b": "NEW"}
    assert tree.former_name(3) is None


def test_a_kernel_below_another_scope_moved() -> None:
    tree = paired([("s/a", 5, 1, ""), ("s/x", 7, 1, "")], [("t/a", 6, 1, ""), ("s/x", 7, 1, "")])

    assert states(tree) == {"s": "MATCHED", "s/x": "MATCHED", "t": "NEW", "t/a": "MOVED"}
    assert tree.origins == {4: ("s", "a")}


def test_followed_rows_have_one_place_and_others_two() -> None:
    base, new = profile_of(("s/a", 5, 1, "c")), profile_of(("t/a", 5, 1, "c"))

    tree = pair([base], [new], Identity(), weight=TIME, follow=False)

    assert states(tree) == {"s": "REMOVED", "s/a": "REMOVED", "t": "NEW", "t/a": "NEW"}


@pytest.mark.parametrize(("code", "state"), [("c", "MOVED"), ("", "NEW")])
def test_an_equal_name_alone_makes_no_move_of_a_much_slower_kernel(code: str, state: str) -> None:
    tree = paired([("s/a", 5, 1, code)], [("t/a", 500, 1, code)])

    assert states(tree)["t/a"] == state


def test_kernels_below_a_renamed_scope_keep_their_counterparts() -> None:
    layers = [(f"model/layer{i}/softmax", 10 + i % 2, 1, "same") for i in range(6)]
    renamed = [(f"net/layer{i}/softmax", 11 - i % 2, 1, "same") for i in range(6)]

    tree = paired(layers, renamed)

    moved = {tree.path(row)[-2]: origin[-2] for row, origin in tree.origins.items()}
    assert moved == {f"layer{i}": f"layer{i}" for i in range(6)}


def test_a_kernel_with_the_same_code_and_another_name_was_renamed() -> None:
    tree = paired([("s/old", 5, 1, "c"), ("s/k", 5, 1, "d")], [("s/new", 9, 4, "c")])

    assert states(tree) == {"s": "MATCHED", "s/k": "REMOVED", "s/new": "RENAMED"}
    assert tree.former_name(3) == "old"


@pytest.mark.parametrize(("time", "state"), [(105, "RENAMED"), (120, "NEW")])
def test_a_lone_kernel_in_the_place_of_another_was_renamed_if_it_takes_as_long(
    time: int, state: str
) -> None:
    tree = paired([("s/old", 100, 2, "")], [("s/new", time, 2, "")])

    assert states(tree)["s/new"] == state


def test_a_renamed_kernel_below_another_scope_moved() -> None:
    tree = paired([("s/old", 5, 1, "c")], [("t/new", 5, 1, "c")])

    assert states(tree)["t/new"] == "MOVED"
    assert tree.former_name(3) == "old"


def test_the_code_of_a_module_with_several_kernels_renames_none() -> None:
    base = [("s/gemm", 50, 1, "library"), ("s/fill", 90, 1, "library")]

    tree = paired(base, [("t/softmax", 7, 1, "library")])

    assert states(tree)["t/softmax"] == "NEW"


def test_inductors_numbers_do_not_matter_unless_raw_names_do() -> None:
    base = [("triton_poi_fused_add_0", 5, 1, "")]
    new = [("triton_poi_fused_add_3", 50, 1, "")]

    assert states(paired(base, new)) == {"triton_poi_fused_add_3": "MATCHED"}
    assert set(states(paired(base, new, raw_names=True)).values()) == {"NEW", "REMOVED"}


def test_equal_siblings_pair_by_code_before_order() -> None:
    name = "triton_poi_fused_add_"
    base = [(f"{name}{i}", 5, 1, f"c{i}") for i in range(3)]
    new = [(f"{name}{i - 1}", 5, 1, f"c{i}") for i in (1, 2)]

    tree = paired(base, new)

    assert tree.states.tolist() == [
        RowState.MATCHED,
        RowState.REMOVED,
        RowState.MATCHED,
        RowState.MATCHED,
    ]
    assert not any(tree.code_changed(row) for row in range(len(tree)))


def test_kernels_that_a_compiler_counted_anew_pair_in_order() -> None:
    names = [f"triton_red_fused_norm_{number}" for number in (2, 4, 6, 8)]
    base = [(names[0], 30, 1, ""), (names[1], 5, 1, ""), (names[2], 70, 1, "")]
    new = [(names[1], 30, 1, ""), (names[2], 5, 1, ""), (names[3], 70, 1, "")]

    tree = paired([*base, ("first", 1, 1, "")], [("added", 9, 4, ""), *new, ("first", 1, 1, "")])

    former = {tree.name(row): tree.former_name(row) for row in range(1, len(tree))}
    assert [former[name] for name in names[1:]] == names[:3]


@pytest.mark.parametrize(
    ("base", "new", "matched"),
    [((1, 3, 5), (3, 5), {3, 5}), ((2, 4), (2, 4, 6), {2, 4}), ((5, 8), (1, 5, 8), {5, 8})],
)
def test_kernels_of_which_there_are_fewer_pair_by_their_numbers_alone(
    base: tuple[int, ...], new: tuple[int, ...], matched: set[int]
) -> None:
    kernels = {number: (f"triton_poi_fused_add_{number}", 9, 1, "") for number in (*base, *new)}

    tree = paired([kernels[each] for each in base], [kernels[each] for each in new])

    found = {name for name, state in states(tree).items() if state == "MATCHED"}
    assert found - {"ROOT"} == {kernels[each][0] for each in matched}


@pytest.mark.parametrize(
    ("base", "new"), [((1, 4, 7), (2, 6)), ((3,), (5, 8)), ((0, 3, 5, 9), (1, 5, 7))]
)
def test_kernels_of_which_no_number_says_which_is_gone_stay_alone(
    base: tuple[int, ...], new: tuple[int, ...]
) -> None:
    sides = [
        [(f"f/triton_red_fused_mean_{number}", time, 1, "") for number in numbers]
        for time, numbers in ((40, base), (41, new))
    ]

    tree = paired(*sides)

    kernels = tree.states[tree.kinds == FrameKind.KERNEL].tolist()
    assert sorted(kernels) == [RowState.NEW] * len(new) + [RowState.REMOVED] * len(base)


def test_kernels_with_other_numbers_still_pair_by_their_code() -> None:
    name = "triton_per_fused_sum_"
    base = [(f"{name}{number}", 9, 1, f"code {number}") for number in (2, 5, 6)]

    tree = paired(base, [(f"{name}{number}", 9, 1, f"code {number + 2}") for number in (3, 4)])

    assert sorted(states(tree).values()) == ["MATCHED", "MATCHED", "REMOVED"]


@pytest.mark.parametrize("pattern", ["step {}", "Step{}", "train_step_{}", "iter[{}]", "epoch:{}"])
@pytest.mark.parametrize(
    ("base", "new", "matched"),
    [
        ((5, 6, 7), (90, 91, 92), {5: 90, 6: 91, 7: 92}),
        ((0, 1), (0, 1, 2), {0: 0, 1: 1}),
        ((8,), (20, 21, 22), {8: 20}),
        ((1, 2, 3, 4), (1, 2, 3), {1: 1, 2: 2, 3: 3}),
        ((3, 4, 5), (9, 10), {3: 9, 4: 10}),
    ],
)
def test_steps_pair_by_their_numbers_or_in_order(
    pattern: str, base: tuple[int, ...], new: tuple[int, ...], matched: dict[int, int]
) -> None:
    sides = [
        [(f"{pattern.format(number)}/{kernel}", 30, 2, "") for number in numbers for kernel in "ab"]
        for numbers in (base, new)
    ]

    tree = paired(*sides)

    rows = [row for row in range(1, len(tree)) if tree.states[row] == RowState.MATCHED]
    names = {tree.former_name(row): tree.name(row) for row in rows if tree.parents[row] == 0}
    assert names == {pattern.format(old): pattern.format(now) for old, now in matched.items()}
    assert len(rows) == 3 * len(matched)  # each with both kernels


@pytest.mark.parametrize("name", ["matmul {}", "conv{}", "rank {}"])
def test_scopes_with_other_numbers_are_other_scopes(name: str) -> None:
    tree = paired([(f"{name.format(3)}/k", 5, 1, "")], [(f"{name.format(4)}/k", 50, 1, "")])

    assert states(tree)[name.format(4)] == "NEW"


def test_kernels_with_the_same_numbers_pair_by_them() -> None:
    one, two = ("triton_poi_fused_mul_4", 30, 1, ""), ("triton_poi_fused_mul_9", 5, 1, "")

    tree = paired([one, two], [two, one])

    assert all(tree.name(row) == tree.former_name(row) for row in range(1, len(tree)))


def test_lines_of_python_frames_do_not_matter() -> None:
    tree = paired([("m.py:10@f/k", 5, 1, "")], [("m.py:12@f/k", 5, 1, "")])

    assert set(states(tree).values()) == {"MATCHED"}
    assert tree.name(1) == "m.py:12@f"
    assert tree.former_name(1) == "m.py:10@f"


def test_calls_from_several_lines_pair_by_line_where_most_lines_are_the_same() -> None:
    base = [(f"m.py:{line}@f/k{line}", 5, 1, "") for line in (1, 2, 3)]

    tree = paired(base, base[1:])

    assert states(tree)["m.py:1@f"] == "REMOVED"
    assert states(tree)["m.py:3@f/k3"] == "MATCHED"


def test_other_code_at_the_same_place_is_a_fact_and_no_new_row() -> None:
    tree = paired([("k", 5, 1, "one")], [("k", 5, 1, "two")])

    assert states(tree) == {"k": "MATCHED"}
    assert tree.code_changed(1)


def variants(*each: Variant) -> Profile:
    builder = ProfileBuilder()
    for variant in each:
        builder.add(0, "k", FrameKind.KERNEL, metrics={TIME: 1}, device=GPU, variant=variant)
    return builder.build()


def called_with(*shapes: str) -> Profile:
    builder = ProfileBuilder()
    for shape in shapes:
        op = builder.add(0, "aten::mm", FrameKind.OP, variant=Variant(signature=shape))
        kernel = Variant(signature=f"{shape}, BM=32")
        builder.add(op, "k", FrameKind.KERNEL, metrics={TIME: 1}, device=GPU, variant=kernel)
    return builder.build()


def test_rows_are_the_same_whatever_shapes_they_were_called_with() -> None:
    tree = paired(called_with("f32[3]", "f32[4]"), called_with("f32[5]"))

    assert states(tree) == {"aten::mm": "MATCHED", "aten::mm/k": "MATCHED"}
    base, new = tree.variants_of(1)
    assert base is None
    assert new == Variant(signature="f32[5]")


def test_variants_with_one_signature_are_one_row() -> None:
    shapes = [Variant("c", grid=(size, 1, 1), signature="*fp32") for size in (1, 2)]
    others = [Variant("c", signature="*fp16")]

    tree = paired(variants(*shapes, *others), variants(*shapes[:1], *others))

    assert list(states(tree).values()) == ["MATCHED"]
    assert len(tree) == 3
    assert [len(set(places.tolist())) for places in tree.places] == [3, 3]
    assert tree.variants_of(1)[0] is None
    assert tree.variants_of(2) == (others[0], others[0])


def test_another_signature_at_the_same_place_is_a_fact() -> None:
    tree = paired(variants(Variant(signature="*fp32")), variants(Variant(signature="*fp16")))

    assert states(tree) == {"k": "MATCHED"}


def test_one_device_of_each_side_is_the_same_whatever_its_number() -> None:
    sides = [profile_of(("k", 5, 1, ""), device=Device("CUDA", index, "90")) for index in (0, 3)]

    assert states(pair(sides[:1], sides[1:], Identity())) == {"k": "MATCHED"}


def test_rows_on_several_devices_are_distinguished() -> None:
    builder = ProfileBuilder()
    for index in (0, 1):
        builder.add(0, "k", metrics={TIME: 1}, device=Device("CUDA", index, "90"))
    both, one = builder.build(), profile_of(("k", 1, 1, ""), device=Device("CUDA", 1, "90"))

    tree = pair([both], [one], Identity())

    assert tree.device_names == ("", "CUDA:0", "CUDA:1")
    assert [RowState(state).name for state in tree.states] == ["MATCHED", "REMOVED", "MATCHED"]


def test_rows_of_several_runs_of_a_side_are_one_union() -> None:
    first, second = profile_of(("a", 5, 1, "")), profile_of(("b", 50, 2, ""))

    tree = pair([first, second], [second], Identity(), weight=TIME)

    assert states(tree) == {"a": "REMOVED", "b": "MATCHED"}
    assert [places.tolist() for places in tree.places] == [[0, 1], [0, 2], [0, 2]]


def test_what_lies_below_variants_of_one_kernel_is_one_row() -> None:
    builder = ProfileBuilder()
    for size in (1, 2):
        row = builder.add(
            0, "k", FrameKind.KERNEL, metrics={TIME: 1}, variant=Variant(grid=(size, 1, 1))
        )
        builder.add(row, "k.py:3@k", FrameKind.LINE, metrics={"num_samples": 4})
    profile = builder.build()

    tree = paired(profile, profile)

    assert [tree.name(row) for row in range(len(tree))] == ["ROOT", "k", "k.py:3@k"]


def test_a_path_is_put_together_when_it_is_asked_for() -> None:
    asked: list[int] = []

    def path(row: int) -> tuple[str, ...]:
        asked.append(row)
        return ("scope", f"k{row}")

    origins = Origins([(5, 2), (7, 3)], path)

    assert (len(origins), list(origins), 5 in origins, 2 in origins) == (2, [5, 7], True, False)
    assert asked == []
    assert origins.get(7) == ("scope", "k3")
    assert asked == [3]


def test_new_numbers_keep_the_chosen_ones() -> None:
    origins = Origins([(0, 2), (1, 3)], lambda row: (f"k{row}",))

    found = origins.renumbered(np.array([1, 2]), np.array([True, True, False]))

    assert found == {1: ("k2",)}
