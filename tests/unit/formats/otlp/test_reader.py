"""OTLP profiles, ours and those of other profilers, become call paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes.profiles import training_profile
from hypothesis import given
from reference.profile_view import profiles, values_by_path

from proton_bench.errors import MetricError, ProfileFormatError
from proton_bench.formats.export.flame_rows import flame_metrics, flame_rows
from proton_bench.formats.otlp.file import OtlpFile
from proton_bench.formats.otlp.values import value_message
from proton_bench.formats.protobuf import Message
from proton_bench.formats.registry import decode_profile, find_format
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

protos: Any = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")

GOLDEN = Path(__file__).parents[3] / "data" / "golden"
SECOND_NS = 10**9


def again(profile: Profile) -> Profile:
    return OtlpFile().decode(OtlpFile().encode(profile), "x.otlp")


# -- ours ------------------------------------------------------------------------------------------
def rows_with(profile: Profile, metric: str) -> dict[Any, int]:
    """Return whole values above 0 by names, kinds and devices of the call path."""
    rows = flame_rows(profile)
    (own,) = (values for column, values in flame_metrics(rows) if column.spec.name == metric)
    found: dict[Any, int] = {}
    for row, value in enumerate(own.round().tolist()):
        path, here = [], row
        while here > 0:
            path.append((rows.name(here), rows.kind(here), rows.device(here)))
            here = int(rows.parents[here])
        if value > 0:
            found[tuple(path)] = int(value)
    return found


@given(profile=profiles())
def test_call_paths_kinds_devices_and_facts_come_back(profile: Profile) -> None:
    try:
        metrics = [column.spec.name for column, _ in flame_metrics(profile)]
    except MetricError:
        return

    found = again(profile)

    found.self_check()
    assert found.provenance == profile.provenance
    assert found.dropped == {key: n for key, n in profile.dropped.items() if n}
    assert found.partial == profile.partial
    for metric in metrics:
        expected = rows_with(profile, metric)
        assert not expected or rows_with(found, metric) == expected


def test_a_file_is_known_by_its_content() -> None:
    content = OtlpFile().encode(training_profile())

    assert decode_profile(content, "run").inclusive("time (ns)")[0] == 4_000_000
    assert not find_format("perfetto").sniff(content)


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("[pt]*.*")))
def test_files_of_other_formats_are_not_taken_for_one(name: str) -> None:
    assert not OtlpFile().sniff((GOLDEN / name).read_bytes())


# -- of other profilers ----------------------------------------------------------------------------
class Recording:
    """A file as a sampling profiler of the host writes it."""

    def __init__(self) -> None:
        self.data = protos.ProfilesData()
        for name in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(self.data.dictionary, f"{name}_table").add()
        self.data.dictionary.string_table.append("")

    def text(self, text: str) -> int:
        table = self.data.dictionary.string_table
        table.append(text)
        return len(table) - 1

    def function(self, name: str, file: str = "") -> int:
        table = self.data.dictionary.function_table
        table.add(name_strindex=self.text(name), filename_strindex=self.text(file))
        return len(table) - 1

    def location(self, *lines: tuple[int, int], **fields: Any) -> int:
        table = self.data.dictionary.location_table
        found = table.add(**fields)
        for function, line in lines:
            found.lines.add(function_index=function, line=line)
        return len(table) - 1

    def stack(self, *locations: int) -> int:
        table = self.data.dictionary.stack_table
        table.add(location_indices=locations)
        return len(table) - 1

    def profile(self, metric: str, unit: str, *, service: str = "") -> Any:
        resource = self.data.resource_profiles.add()
        if service:
            resource.resource.attributes.add(key="service.name").value.string_value = service
            resource.resource.attributes.add(key="host.name").value.string_value = "node7"
        found = resource.scope_profiles.add().profiles.add()
        found.sample_type.type_strindex = self.text(metric)
        found.sample_type.unit_strindex = self.text(unit)
        return found

    def read(self) -> Profile:
        return OtlpFile().decode(self.data.SerializeToString(), "x.otlp")


def test_inlined_functions_stand_below_their_callers() -> None:
    recording = Recording()
    inner = recording.function("memcpy", "/src/string.c")
    outer = recording.function("printf", "/src/stdio.c")
    main = recording.location((recording.function("main"), 0))
    stack = recording.stack(recording.location((inner, 3), (outer, 9)), main)
    recording.profile("cpu", "nanoseconds").samples.add(stack_index=stack, values=[5, 6])

    found = recording.read()

    assert values_by_path(found, "cpu (ns)") == {
        "main//src/stdio.c:9@printf//src/string.c:3@memcpy": 11
    }


def test_places_without_symbols_are_named_by_address() -> None:
    recording = Recording()
    recording.data.dictionary.mapping_table.add(filename_strindex=recording.text("libc.so.6"))
    stack = recording.stack(
        recording.location(mapping_index=1, address=0x1234),
        recording.location(address=0xABC),
        recording.location(),
    )
    recording.profile("samples", "count").samples.add(stack_index=stack, values=[2])

    assert values_by_path(recording.read(), "samples") == {
        "[unknown]/[unknown]+0xabc/libc.so.6+0x1234": 2
    }


def test_samples_that_have_times_alone_count_one_each() -> None:
    recording = Recording()
    stack = recording.stack(recording.location((recording.function("f"), 0)))
    found = recording.profile("samples", "count")
    found.samples.add(stack_index=stack, timestamps_unix_nano=[1, 2, 3])
    found.samples.add(stack_index=stack, timestamps_unix_nano=[4], values=[10])
    found.time_unix_nano, found.duration_nano = 5 * SECOND_NS, 2 * SECOND_NS

    profile = recording.read()

    assert values_by_path(profile, "samples") == {"f": 13}
    assert profile.provenance["start_time_ns"] == 5 * SECOND_NS
    assert profile.provenance["end_time_ns"] == 7 * SECOND_NS


def test_each_of_several_resources_is_a_row_and_common_facts_stay() -> None:
    recording = Recording()
    stack = recording.stack(recording.location((recording.function("f"), 0)))
    for service, value in (("web", 1), ("db", 2), ("web", 4)):
        found = recording.profile("cpu", "nanoseconds", service=service)
        found.samples.add(stack_index=stack, values=[value])

    profile = recording.read()

    assert values_by_path(profile, "cpu (ns)") == {"web/f": 5, "db/f": 2}
    assert profile.provenance.to_plain() == {"host": "node7"}


def test_attributes_may_stand_in_the_string_table() -> None:
    recording = Recording()
    kind = recording.data.dictionary.attribute_table.add(
        key_strindex=recording.text("profile.frame.type")
    )
    kind.value.string_value_strindex = recording.text("cpython")
    location = recording.location((recording.function("f", "a.py"), 3), attribute_indices=[1])
    found = recording.profile("cpu", "nanoseconds", service="web")
    found.samples.add(stack_index=recording.stack(location), values=[1])
    attribute = recording.data.resource_profiles[0].resource.attributes.add()
    attribute.key_strindex = recording.text("cloud.region")
    attribute.value.array_value.values.add().double_value = 0.5

    profile = recording.read()

    assert profile.kind(1) is FrameKind.PYTHON
    assert profile.provenance["cloud.region"] == (0.5,)
    assert again(profile).provenance == profile.provenance


def test_negative_values_are_read() -> None:
    recording = Recording()
    stack = recording.stack(recording.location((recording.function("f"), 0)))
    recording.profile("delta", "bytes").samples.add(stack_index=stack, values=[-7])

    assert values_by_path(recording.read(), "delta (bytes)") == {"f": -7}


# -- what cannot be read ---------------------------------------------------------------------------
def refused(content: bytes) -> str:
    with pytest.raises(ProfileFormatError) as caught:
        decode_profile(content, "x.otlp")
    return str(caught.value)


@pytest.mark.parametrize(
    ("table", "entry", "what"),
    [
        ("stack_table", {"location_indices": [9]}, "location 9"),
        ("location_table", {"attribute_indices": [9]}, "attribute 9"),
        ("location_table", {"mapping_index": 9}, "mapping 9"),
        ("location_table", {"lines": [{"function_index": 9}]}, "function 9"),
        ("function_table", {"name_strindex": 9}, "text 9"),
        ("attribute_table", {"key_strindex": 9}, "text 9"),
        ("attribute_table", {"value": {"string_value_strindex": 9}}, "text 9"),
    ],
)
def test_an_index_without_an_entry_is_refused(table: str, entry: dict[str, Any], what: str) -> None:
    recording = Recording()
    getattr(recording.data.dictionary, table).add(**entry)
    recording.profile("cpu", "").samples.add(stack_index=1, values=[1])

    assert what in refused(recording.data.SerializeToString())


def test_a_file_without_a_dictionary_is_refused() -> None:
    recording = Recording()
    recording.profile("", "").samples.add(values=[1])
    recording.data.ClearField("dictionary")

    assert "development version 1" in refused(recording.data.SerializeToString())


def test_files_one_after_the_other_are_refused() -> None:
    assert "several files" in refused(2 * OtlpFile().encode(training_profile()))


def test_deeply_nested_attributes_are_refused() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    attribute = Message().text(1, "deep").message(2, value_message(value))
    content = bytes(Message().message(1, Message().message(1, Message().message(1, attribute))))

    assert "nested deeper" in refused(content)


def test_few_bytes_cannot_name_many_frames() -> None:
    recording = Recording()
    function = recording.function("f")
    location = recording.location(*[(function, 0)] * 2000)
    stack = recording.stack(*[location] * 20_000)
    recording.profile("cpu", "").samples.add(stack_index=stack, values=[1])

    assert "packets and events" in refused(recording.data.SerializeToString())


def test_few_bytes_cannot_make_many_long_names() -> None:
    recording = Recording()
    function = recording.function("f", "x" * 1_000_000)
    places = [recording.location((function, line)) for line in range(1000)]
    recording.profile("cpu", "").samples.add(stack_index=recording.stack(*places), values=[1])

    assert "long texts" in refused(recording.data.SerializeToString())


@pytest.mark.parametrize(
    "devices", ["CUDA:0", ["CUDA:0"], [{"kind": 5, "index": 0}], [{"kind": "CUDA"}]]
)
def test_what_is_no_device_is_left_out(devices: Any) -> None:
    attribute = Message().text(1, "proton_bench.devices").message(2, value_message(devices))
    resource = bytes(Message().message(1, Message().message(1, attribute)))
    recording = Recording()
    stack = recording.stack(recording.location((recording.function("f"), 0)))
    found = recording.profile("cpu", "")
    found.samples.add(stack_index=stack, values=[1])
    recording.data.resource_profiles[0].MergeFromString(resource)

    profile = recording.read()

    assert profile.devices == ()
    assert len(profile) == 2
