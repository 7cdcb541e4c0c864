"""Decoding equals the oracle, whatever programs wrote; the reduction sums what decoding finds."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from reference.record_oracle import Layout, Program, Record, RecordOracle

from proton_bench import _native as native

SKIPPED = "skipped_programs"


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    warps = draw(st.integers(1, 5))
    ids = draw(st.sets(st.integers(0, warps - 1)))
    return Layout(
        warps=warps,
        scopes=draw(st.integers(1, 5)),
        slots=draw(st.sampled_from([1, 2, 4, 8, 16])),
        warp_ids=tuple(sorted(ids)),
        short_clock=draw(st.booleans()),
        record_cost_cycles=draw(st.sampled_from([0, 3, 40])),
    )


@st.composite
def launches(draw: st.DrawFn) -> tuple[Layout, list[Program | None]]:
    """Programs of one launch; None never ran. Clocks run on, and turn over now and then."""
    layout = draw(layouts())
    base = draw(st.sampled_from([0, 2**32 - 100, 2**43 - 100]))
    step = st.tuples(
        st.integers(0, 5), st.booleans(), st.integers(0, 60), st.sampled_from([False] * 3 + [True])
    )
    programs: list[Program | None] = []
    for number in range(draw(st.integers(0, 3))):
        segments = []
        for _ in layout.recording:
            clock, records = base, []
            for scope, is_end, elapsed, is_async in draw(st.lists(step, max_size=24)):
                clock += elapsed
                records.append(Record(scope, is_end, clock % layout.modulus, is_async))
            segments.append(tuple(records))
        programs.append(Program(number, tuple(segments)) if draw(st.booleans()) else None)
    return layout, programs


def packed(layout: Layout, programs: list[Program | None]) -> bytes:
    skipped = bytes(layout.scratch_bytes)
    return b"".join(program.packed(layout) if program else skipped for program in programs)


@given(launches())
def test_decoding_equals_the_oracle(launch: tuple[Layout, list[Program | None]]) -> None:
    layout, programs = launch
    oracle = RecordOracle(layout)
    for program in filter(None, programs):
        oracle.add(program)

    headers, instances, counts = native.decode_records(
        packed(layout, programs), layout.attributes()
    )

    assert instances == oracle.instances
    assert [header[0] for header in headers] == [each.number for each in programs if each]
    skipped = sum(program is None for program in programs)
    assert +Counter(counts) == +(oracle.counts + Counter({SKIPPED: skipped}))


@given(launches())
def test_the_reduction_sums_what_decoding_finds(
    launch: tuple[Layout, list[Program | None]],
) -> None:
    layout, programs = launch
    content = packed(layout, programs)
    _, instances, counts = native.decode_records(content, layout.attributes())

    totals, scopes = native.reduce_records(content, layout.attributes())

    assert totals == {"launches": 1, **counts}
    for number, scope in enumerate(scopes):
        cycles = [row[7] for row in instances if row[1] == number]
        assert (scope["count"], scope["cycles"]) == (len(cycles), sum(cycles))
        assert (scope["min_cycles"], scope["max_cycles"]) == (
            min(cycles, default=0), max(cycles, default=0),
        )  # fmt: skip
        assert scope["buckets"] == Counter(map(bucket, cycles))


def bucket(cycles: int) -> int:
    """Below 16 the value itself, above it 16 per octave."""
    octave = max(cycles.bit_length() - 5, 0)
    return cycles if cycles < 16 else 16 * (octave + 1) + (cycles >> octave) % 16


@given(launches(), st.data())
def test_damaged_buffers_are_counted_and_never_fatal(
    launch: tuple[Layout, list[Program | None]], data: st.DataObject
) -> None:
    layout, programs = launch
    content = bytearray(packed(layout, programs))
    for _ in range(data.draw(st.integers(0, 8))):
        if content:
            content[data.draw(st.integers(0, min(len(content) - 1, 200)))] ^= data.draw(
                st.integers(1, 255)
            )
    cut = data.draw(st.integers(0, len(content)))

    _, instances, counts = native.decode_records(bytes(content[:cut]), layout.attributes())

    kinds = ("programs", "skipped_programs", "corrupt_programs")
    assert sum(counts[kind] for kind in kinds) == -(-cut // layout.scratch_bytes)
    assert 2 * len(instances) + counts["unpaired_records"] == counts["records"]
