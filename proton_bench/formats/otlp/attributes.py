"""What is known of a run, its devices and its frames, by OpenTelemetry's semantic conventions.

A fact that the conventions do not name is an attribute ``proton_bench.run.<key>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import msgspec

from proton_bench.model.device import Device
from proton_bench.model.frame import KIND_NAMES, FrameKind
from proton_bench.model.profile import Profile

__all__ = [
    "DEVICE_ID",
    "FRAME_TYPE",
    "SERVICE_NAME",
    "device_id",
    "devices_of",
    "dropped_of",
    "facts_of",
    "frame_type",
    "is_partial",
    "kind_of",
    "run_attributes",
    "sample_attributes",
]

DEVICE_ID, FRAME_TYPE, SERVICE_NAME = "hw.id", "profile.frame.type", "service.name"
_OWN = "proton_bench."
_RUN, _DEVICES = f"{_OWN}run.", f"{_OWN}devices"
_DROPPED, _PARTIAL = f"{_OWN}dropped", f"{_OWN}partial"
# Keys of the provenance that the conventions name.
_CONVENTIONS = {
    "command": "process.command_args",
    "directory": "process.working_directory",
    "host": "host.name",
    "pid": "process.pid",
    "python": "process.runtime.version",
    "system": "os.description",
}
_KEYS = {attribute: key for key, attribute in _CONVENTIONS.items()}
_UNKNOWN_SERVICE = "unknown_service"  # as the conventions ask for
_PYTHON, _CUDA = "cpython", "cuda"
_INT64 = range(2**63)


# -- the run ---------------------------------------------------------------------------------------
def run_attributes(profile: Profile) -> dict[str, Any]:
    """Return the attributes of the resource: facts about the run and its devices."""
    facts = profile.provenance.to_plain()
    found = _derived(facts)
    for key, value in facts.items():
        # A key with a dot is an attribute that a file of another tool had.
        found[_CONVENTIONS.get(key) or (key if "." in key else f"{_RUN}{key}")] = value
    if profile.devices:
        found[_DEVICES] = [
            {key: value for key, value in asdict(device).items() if value != ""}
            for device in profile.devices
        ]
    if profile.dropped:
        found[_DROPPED] = dict(profile.dropped)
    if profile.partial:
        found[_PARTIAL] = True
    return found


def _derived(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes that follow from other facts."""
    command = facts.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    found: dict[str, Any] = {SERVICE_NAME: _service(words)}
    if words:
        found["process.command"] = words[0]
    if "python" in facts:
        found["process.runtime.name"] = _PYTHON
    git = facts.get("git")
    if isinstance(git, dict) and "revision" in git:
        found["vcs.ref.head.revision"] = git["revision"]
    return found


def _service(words: list[str]) -> str:
    """Return the name of the program: that of its script, module or executable."""
    for word, following in pairwise((*words, "")):
        if word.endswith(".py"):
            return PurePosixPath(word).stem
        if word == "-m" and following:
            return following
    return PurePosixPath(words[0]).name if words else _UNKNOWN_SERVICE


def facts_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance that a resource gives; those of other tools keep their names."""
    found = {
        _KEYS.get(key) or key.removeprefix(_RUN): value
        for key, value in attributes.items()
        if key.startswith(_RUN) or not key.startswith(_OWN)
    }
    again = _derived(found).items()
    return {key: value for key, value in found.items() if (key, value) not in again}


def dropped_of(attributes: Mapping[str, Any]) -> dict[str, int]:
    """Return how many records were lost, by reason."""
    found = attributes.get(_DROPPED)
    counts = found.items() if isinstance(found, dict) else ()
    return {key: count for key, count in counts if type(count) is int and count in _INT64}


def is_partial(attributes: Mapping[str, Any]) -> bool:
    """Return whether the run had not ended."""
    return attributes.get(_PARTIAL) is True


# -- devices ---------------------------------------------------------------------------------------
def device_id(device: Device) -> str:
    """Return the identifier of a device on its host."""
    return f"{device.kind}:{device.index}"


def sample_attributes(device: Device, profile: Profile) -> dict[str, str]:
    """Return the attributes of samples on a device."""
    found = {DEVICE_ID: device_id(device), "hw.type": "cpu" if device.kind == "CPU" else "gpu"}
    # Numbers of the driver need not be those of the program: only a name that all have is certain.
    gpus = profile.provenance.get("gpus_at_start") if device.kind == "CUDA" else None
    listed = gpus if isinstance(gpus, tuple) else ()
    names = {gpu.get("name") if isinstance(gpu, Mapping) else None for gpu in listed}
    if len(names) == 1 and isinstance(name := names.pop(), str):
        found["hw.model"] = name
    return found


def devices_of(attributes: Mapping[str, Any]) -> dict[str, Device]:
    """Return the devices of a resource by their identifiers; other values are left out."""
    listed = attributes.get(_DEVICES)
    found: dict[str, Device] = {}
    for each in listed if isinstance(listed, list) else ():
        try:
            device = msgspec.convert(each, Device)
        except msgspec.ValidationError:
            continue
        found.setdefault(device_id(device), device)
    return found


# -- frames ----------------------------------------------------------------------------------------
def frame_type(kind: FrameKind, device: Device | None) -> str:
    """Return the type of a frame, "" if nothing is known of it."""
    if kind is FrameKind.PYTHON:
        return _PYTHON
    if kind is FrameKind.KERNEL and device is not None and device.kind == "CUDA":
        return _CUDA
    return "" if kind is FrameKind.UNKNOWN else f"{_OWN}{KIND_NAMES[kind]}"


def kind_of(type_: str) -> FrameKind:
    """Return the kind of rows for frames of a type."""
    return _KINDS.get(type_, FrameKind.UNKNOWN)


_KINDS = {f"{_OWN}{name}": FrameKind(number) for number, name in enumerate(KIND_NAMES)} | {
    _PYTHON: FrameKind.PYTHON,
    _CUDA: FrameKind.KERNEL,
}
