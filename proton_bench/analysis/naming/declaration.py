"""The declaration of a C++ function, taken apart: its name, template arguments and types.

Spellings differ: binutils writes ``{lambda(float)#1}`` and ``2ul``, Nsight Systems ``[lambda(float)
(instance 1)]`` and ``(unsigned long)2``. They are made equal first.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

__all__ = ["MAX_CHARACTERS", "Declaration", "parse", "scalar_type", "without_scopes"]

# Real names are shorter; of longer ones only the beginning is read.
MAX_CHARACTERS = 4096

_SUFFIXES = (" [clone .kd]", " (.kd)", ".kd")
_NSIGHT_LAMBDA = re.compile(r"\[lambda\(([^()]{0,200})\) \(instance (\d{1,4})\)\]")
_CAST = re.compile(r"\((?:bool|int|unsigned int|long|unsigned long|short|char)\)(?=[\w-])")
_CASTS = ("(int)", "(bool)", "(unsigned ", "(long)")
_SCOPES = re.compile(r"\b(?:[A-Za-z_]\w{0,200}::)+")
_TOKEN = re.compile(r"[<>(){},]|->|operator ?(?:\(\)|<<|>>|<=|>=|<|>|->)")
_OPENING, _CLOSING = frozenset("<({"), frozenset(">)}")
_SHORT_TYPES = {
    "c10::BFloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "cutlass::bfloat16_t": "bf16",
    "__hip_bfloat16": "bf16",
    "hip_bfloat16": "bf16",
    "c10::Half": "f16",
    "__half": "f16",
    "cutlass::half_t": "f16",
    "_Float16": "f16",
    "cutlass::tfloat32_t": "tf32",
    "c10::Float8_e4m3fn": "f8e4m3",
    "c10::Float8_e4m3fnuz": "f8e4m3fnuz",
    "c10::Float8_e5m2fnuz": "f8e5m2fnuz",
    "c10::Float8_e8m0fnu": "f8e8m0",
    "__nv_fp8_e4m3": "f8e4m3",
    "cutlass::float_e4m3_t": "f8e4m3",
    "c10::Float8_e5m2": "f8e5m2",
    "__nv_fp8_e5m2": "f8e5m2",
    "cutlass::float_e5m2_t": "f8e5m2",
    "unsigned char": "uint8",
    "signed char": "int8",
    "unsigned short": "uint16",
    "short": "int16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "unsigned long long": "uint64",
    "long": "int64",
    "long long": "int64",
}
_PLAIN_TYPES = ("double", "float", "int", "bool", "char")
_TYPE = re.compile(
    r"(?<![\w:])(?:c10::complex<(?P<part>double|float|c10::Half)>|(?P<type>"
    + "|".join(sorted((*_SHORT_TYPES, *_PLAIN_TYPES), key=len, reverse=True))
    + r"))(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function's name without scopes, and its template arguments.

    Attributes:
        scope: What comes before the name, such as ``at::native``; "" for none.
        name: The function's own name.
        arguments: Template arguments of the function.
        text: The whole declaration, at most `MAX_CHARACTERS`, in one spelling.
    """

    scope: str
    name: str
    arguments: tuple[str, ...]
    text: str


def parse(text: str) -> Declaration | None:
    """Return the parts of a declaration, None if the text is none."""
    text = _in_one_spelling(text[:MAX_CHARACTERS])
    outside, cuts, stop = _outside_brackets(text)
    words = outside.split()
    scope, _, name = (words[-1] if words else "").rpartition("::")
    if not name.isidentifier():
        return None
    behind = text[cuts[-1] + 1 : stop].strip() if cuts else ""
    if behind and not behind.startswith("::"):
        return None
    # Arguments of a class around the function are not its own.
    is_last = bool(cuts) and not behind
    bounds = itertools.pairwise(cuts) if is_last else ()
    arguments = tuple(text[left + 1 : right].strip() for left, right in bounds)
    return Declaration(scope, name, arguments, text)


def _outside_brackets(text: str) -> tuple[str, list[int], int]:
    """Return the text outside of brackets up to the parameters.

    Returns:
        The text, the places of the last ``<``, the commas directly inside and the ``>``, and where
        the parameters begin.
    """
    kept: list[str] = []
    cuts: list[int] = []
    depth, place, stop = 0, 0, len(text)
    for match in _TOKEN.finditer(text):
        token, start = match[0], match.start()
        if token in _OPENING and not depth:
            kept.append(text[place:start])
            place = stop = start
            if token != "<":
                break
            cuts, depth = [start], 1
        elif token in _OPENING:
            depth += 1
        elif token in _CLOSING:
            depth -= depth > 0
            if not depth and place == stop:
                cuts.append(start)
                place, stop = start + 1, len(text)
        elif token == "," and depth == 1:
            cuts.append(start)
    if depth:  # cut off, or brackets that do not fit
        cuts.append(len(text))
    elif stop == len(text):
        kept.append(text[place:])
    return "".join(kept), cuts, len(text) if depth else stop


def _in_one_spelling(text: str) -> str:
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix)
    if "(anonymous namespace)::" in text:
        text = text.replace("(anonymous namespace)::", "")
    if "<unnamed>::" in text:
        text = text.replace("<unnamed>::", "")
    if "[lambda(" in text:
        text = _NSIGHT_LAMBDA.sub(r"{lambda(\1)#\2}", text)
    if any(cast in text for cast in _CASTS):
        text = _CAST.sub("", text)
    return text


def scalar_type(text: str) -> str:
    """Return the first type of numbers in a text, such as ``float`` or ``bf16``; "" for none."""
    match = _TYPE.search(text)
    if match is None:
        return ""
    if match["part"]:
        return f"complex<{_SHORT_TYPES.get(match['part'], match['part'])}>"
    return _SHORT_TYPES.get(match["type"], match["type"])


def without_scopes(text: str) -> str:
    """Return a text of types with short names: ``at::native::Add<c10::Half>`` is ``Add<f16>``."""
    text = _TYPE.sub(lambda match: scalar_type(match[0]), text)
    if "::" in text:
        text = _SCOPES.sub("", text)
    return text.replace(", ", ",").replace(" >", ">")
