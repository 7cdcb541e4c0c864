from __future__ import annotations

import pytest

from proton_bench.recording.models.torch_probe import node_offsets

NODES = {"SumBackward0": 1015, "SigmoidBackward0": 1014}
FORWARD_THREAD, BACKWARD_THREAD = 43, 44
Each = tuple[str, str, bool, bool, list[int], int]


def record(name: str, number: int, made_on: int, ran_on: int, *, other: int = 7) -> Each:
    return ("backward", name, True, True, [ran_on, other, number, other, made_on], ran_on)


SEEN = [
    record("TanhBackward0", 1011, FORWARD_THREAD, FORWARD_THREAD),
    *(record(name, number, FORWARD_THREAD, BACKWARD_THREAD) for name, number in NODES.items()),
    record("SumBackward0", 3, 50, 50),
]


def test_numbers_are_found_where_every_record_has_them() -> None:
    assert node_offsets(SEEN, NODES) == (16, 32)


@pytest.mark.parametrize(
    "seen",
    [
        [],
        SEEN[1:],  # no thread is known
        SEEN[:2],  # a node was not seen
        [SEEN[0], *(record(name, number, 1, BACKWARD_THREAD) for name, number in NODES.items())],
    ],
)
def test_numbers_that_are_not_certain_are_not_used(seen: list[Each]) -> None:
    assert node_offsets(seen, NODES) == (0, 0)


def test_two_places_with_the_same_number_are_not_used() -> None:
    doubled = [
        (*each[:4], [each[4][2], *each[4][1:]], each[5]) if each[1] in NODES else each
        for each in SEEN
    ]

    assert node_offsets(doubled, NODES) == (0, 0)
