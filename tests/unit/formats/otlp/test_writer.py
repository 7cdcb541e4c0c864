"""What is written fits OpenTelemetry's own messages, rules and names."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from inspect import getmembers, isclass
from typing import Any

import pytest
from fakes.flames import otlp_profiles
from fakes.profiles import training_profile
from fakes.samples import sampled_profile
from hypothesis import given
from reference.golden_profile import golden_profile
from reference.profile_view import profiles

from proton_bench.errors import MetricError
from proton_bench.formats.export.flame_rows import flame_metrics, flame_rows
from proton_bench.formats.otlp import schema
from proton_bench.formats.otlp.file import OtlpFile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

protos: Any = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
collector: Any = pytest.importorskip(
    "opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2"
)
common: Any = pytest.importorskip("opentelemetry.proto.common.v1.common_pb2")
resources: Any = pytest.importorskip("opentelemetry.proto.resource.v1.resource_pb2")
conventions: Any = pytest.importorskip("opentelemetry.semconv._incubating.attributes")

START_NS, END_NS = 1_795_538_678_587_029_650, 1_795_538_768_122_622_521
FACTS = {
    "proton_bench": "0.1.0",
    "python": "3.13.1",
    "command": ["python", "train.py", "--fast"],
    "directory": "/home/me",
    "host": "node7",
    "system": "Linux 6.1 x86_64",
    "pid": 7,
    "rank": 3,
    "start_time_ns": START_NS,
    "end_time_ns": END_NS,
    "gpus_at_start": [{"name": "NVIDIA H100", "uuid": "GPU-1"}, {"name": "NVIDIA H100"}],
    "git": {"revision": "8d1f", "dirty": False},
}


def written(profile: Profile) -> Any:
    return otlp_profiles(OtlpFile().encode(profile))


def recorded(**facts: Any) -> Profile:
    return replace(training_profile(), provenance=Provenance(FACTS | facts))


def plain(value: Any) -> Any:
    """Return the value of an attribute."""
    chosen = value.WhichOneof("value")
    if chosen == "array_value":
        return [plain(each) for each in value.array_value.values]
    if chosen == "kvlist_value":
        return {each.key: plain(each.value) for each in value.kvlist_value.values}
    return getattr(value, chosen) if chosen else None


def attributes(found: Iterable[Any]) -> dict[str, Any]:
    return {each.key: plain(each.value) for each in found}


def resource(profile: Profile) -> dict[str, Any]:
    return attributes(written(profile).resource_profiles[0].resource.attributes)


# -- the schema ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", schema.__all__)
def test_field_numbers_are_those_of_the_schema(name: str) -> None:
    message = next(
        each.DESCRIPTOR.message_types_by_name[name]
        for each in (protos, common, resources)
        if name in each.DESCRIPTOR.message_types_by_name
    )

    ours = {key: value for key, value in vars(getattr(schema, name)).items() if key.isupper()}

    assert ours
    assert ours == {key: message.fields_by_name[key.lower()].number for key in ours}


def test_every_message_of_the_schema_is_compared() -> None:
    assert {name for name, _ in getmembers(schema, isclass)} == set(schema.__all__)


@given(profile=profiles())
def test_the_rules_of_the_schema_hold(profile: Profile) -> None:
    try:
        content = OtlpFile().encode(profile)
    except MetricError:
        return
    data = otlp_profiles(content)

    before = data.ByteSize()
    data.DiscardUnknownFields()
    assert data.ByteSize() == before
    check_tables(data.dictionary)
    found = data.resource_profiles[0].scope_profiles[0].profiles
    used = Counter[tuple[str, int]]()
    for each in found:
        check_samples(each, used)
    assert len({each.profile_id for each in found}) == len(found)
    assert {index for table, index in used if table == "stack"} | {0} == set(
        range(len(data.dictionary.stack_table))
    )
    assert collector.ExportProfilesServiceRequest.FromString(content).SerializeToString() == (
        data.SerializeToString()
    )


def check_tables(tables: Any) -> None:
    """Check that entries are distinct, that the first is nothing, and that all refer to others."""
    for name in ("mapping", "location", "function", "link", "attribute", "stack"):
        entries = [each.SerializeToString() for each in getattr(tables, f"{name}_table")]
        assert entries[0] == b""
        assert len(set(entries)) == len(entries)
    texts = tables.string_table
    assert texts[0] == ""
    assert len(set(texts)) == len(texts)
    for function in tables.function_table:
        assert max(function.name_strindex, function.filename_strindex) < len(texts)
    for attribute in tables.attribute_table:
        assert attribute.key_strindex < len(texts)
    for location in tables.location_table[1:]:
        (line,) = location.lines
        assert line.function_index < len(tables.function_table)
        assert all(0 < each < len(tables.attribute_table) for each in location.attribute_indices)
    stacks = [stack.location_indices for stack in tables.stack_table]
    used = {place for stack in stacks for place in stack} | {0}
    assert used == set(range(len(tables.location_table)))


def check_samples(profile: Any, used: Counter[tuple[str, int]]) -> None:
    assert len(profile.profile_id) == 16
    for sample in profile.samples:
        assert len(sample.values) == 1
        assert sample.values[0] > 0
        assert not sample.timestamps_unix_nano
        assert 0 not in sample.attribute_indices
        used["stack", sample.stack_index] += 1


# -- values ----------------------------------------------------------------------------------------
@given(profile=profiles())
def test_totals_survive(profile: Profile) -> None:
    try:
        metrics = flame_metrics(flame_rows(profile))
    except MetricError:
        return
    data = written(profile)

    texts = data.dictionary.string_table
    totals = {
        texts[each.sample_type.type_strindex]: sum(sum(sample.values) for sample in each.samples)
        for each in data.resource_profiles[0].scope_profiles[0].profiles
    }
    assert set(totals) == {column.spec.base for column, _ in metrics}
    for column, own in metrics:
        rounding = len(profile) if own.dtype.kind == "f" else 0
        assert totals[column.spec.base] == pytest.approx(sum(own.tolist()), abs=rounding)


def test_the_first_profile_is_that_of_time() -> None:
    data = written(golden_profile())

    texts = data.dictionary.string_table
    found = data.resource_profiles[0].scope_profiles[0].profiles
    metrics = [
        (texts[each.sample_type.type_strindex], texts[each.sample_type.unit_strindex])
        for each in found
    ]
    assert metrics[0] == ("time", "nanoseconds")
    assert set(metrics[1:]) == {("count", "count"), ("flops16", "count"), ("bytes", "bytes")}


def test_profiles_have_the_time_of_the_run() -> None:
    (found, *_) = written(recorded()).resource_profiles[0].scope_profiles[0].profiles

    assert (found.time_unix_nano, found.duration_nano) == (START_NS, END_NS - START_NS)


def test_lines_stand_in_locations_and_not_in_functions() -> None:
    tables = written(training_profile()).dictionary

    texts = tables.string_table
    lines = {
        (texts[function.name_strindex], texts[function.filename_strindex], line.line)
        for location in tables.location_table
        for line in location.lines
        for function in (tables.function_table[line.function_index],)
    }
    assert ("forward", "/home/me/model.py", 3) in lines
    assert ("forward", "", 0) in lines


def test_the_same_profile_has_the_same_identifier_and_another_has_not() -> None:
    def identifiers(profile: Profile) -> list[bytes]:
        found = written(profile).resource_profiles[0].scope_profiles[0].profiles
        return [each.profile_id for each in found]

    assert identifiers(recorded()) == identifiers(recorded())
    assert not set(identifiers(recorded())) & set(identifiers(recorded(rank=4)))


# -- attributes ------------------------------------------------------------------------------------
def test_facts_have_the_names_of_the_conventions() -> None:
    found = resource(recorded())

    assert {key: value for key, value in found.items() if not key.startswith("proton_bench.")} == {
        "service.name": "train",
        "host.name": "node7",
        "os.description": "Linux 6.1 x86_64",
        "process.pid": 7,
        "process.command": "python",
        "process.command_args": ["python", "train.py", "--fast"],
        "process.working_directory": "/home/me",
        "process.runtime.name": "cpython",
        "process.runtime.version": "3.13.1",
        "vcs.ref.head.revision": "8d1f",
    }
    assert found["proton_bench.run.rank"] == 3
    assert found["proton_bench.run.git"] == {"revision": "8d1f", "dirty": False}


def test_every_other_attribute_is_one_of_the_conventions() -> None:
    known = {
        value
        for module in pkgutil.iter_modules(conventions.__path__, f"{conventions.__name__}.")
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, str)
    }
    data = written(recorded())

    texts = data.dictionary.string_table
    keys = {each.key for each in data.resource_profiles[0].resource.attributes}
    keys |= {texts[each.key_strindex] for each in data.dictionary.attribute_table[1:]}
    assert {"hw.id", "profile.frame.type"} < keys
    assert {key for key in keys if not key.startswith("proton_bench.")} <= known


@pytest.mark.parametrize(
    ("command", "service"),
    [
        (["/usr/bin/python", "/home/me/fit.py", "x.py"], "fit"),
        (["python", "-m", "torch.distributed.run", "fit.py"], "torch.distributed.run"),
        (["/usr/bin/pytest", "tests"], "pytest"),
        ([], "unknown_service"),
        ("python train.py", "unknown_service"),
    ],
)
def test_the_service_is_the_program(command: Any, service: str) -> None:
    assert resource(recorded(command=command))["service.name"] == service


def sample_labels(profile: Profile) -> set[tuple[tuple[str, str], ...]]:
    data = written(profile)
    texts, table = data.dictionary.string_table, data.dictionary.attribute_table
    return {
        tuple(
            (texts[table[each].key_strindex], plain(table[each].value))
            for each in sample.attribute_indices
        )
        for found in data.resource_profiles[0].scope_profiles[0].profiles
        for sample in found.samples
    }


def test_samples_on_a_gpu_say_which() -> None:
    assert sample_labels(recorded()) == {
        (("hw.id", "CUDA:0"), ("hw.type", "gpu"), ("hw.model", "NVIDIA H100"))
    }


def test_a_model_that_not_all_gpus_have_is_not_named() -> None:
    mixed = recorded(gpus_at_start=[{"name": "NVIDIA H100"}, {"name": "NVIDIA L4"}])

    assert sample_labels(mixed) == {(("hw.id", "CUDA:0"), ("hw.type", "gpu"))}


def test_equal_paths_on_several_devices_are_samples_of_each() -> None:
    builder = ProfileBuilder()
    for device in (Device("CUDA", 0), Device("HIP", 0), Device("CPU", 0)):
        builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 1}, device=device)
    builder.add(0, "k", metrics={"time (ns)": 1})

    assert sample_labels(builder.build()) == {
        (("hw.id", "CUDA:0"), ("hw.type", "gpu")),
        (("hw.id", "HIP:0"), ("hw.type", "gpu")),
        (("hw.id", "CPU:0"), ("hw.type", "cpu")),
        (),
    }


def test_frames_have_types() -> None:
    data = written(sampled_profile())

    texts, table = data.dictionary.string_table, data.dictionary.attribute_table
    types = {
        texts[data.dictionary.function_table[location.lines[0].function_index].name_strindex]: {
            texts[table[each].key_strindex]: plain(table[each].value)
            for each in location.attribute_indices
        }.get("profile.frame.type")
        for location in data.dictionary.location_table[1:]
    }
    assert types["train"] == "proton_bench.scope"
    assert types["softmax_kernel"] == "cuda"
    assert types["softmax.py:12 softmax_kernel"] == "proton_bench.line"


def test_losses_name_what_is_missing_and_not_the_provenance() -> None:
    noted = "\n".join(OtlpFile().losses(golden_profile()))

    assert "distributions" in noted
    assert "provenance" not in noted
    assert "left out: wall (ns)" in noted
