"""Texts for the names of kernels: short, and never equal for different names.

The short form of a name is that of its family, else its declaration made shorter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from proton_bench.analysis.naming.demangling import all_demangled
from proton_bench.analysis.naming.families import SYMBOLS, template_of
from proton_bench.analysis.naming.frame_names import told_apart
from proton_bench.analysis.naming.operation import (
    Declaration,
    operand_type,
    operation,
    parse,
    scalar_type,
    without_scopes,
)
from proton_bench.errors import BackendUnavailableError

# More does not fit beside the columns of a report; what is cut off does not get lost, because equal
# texts get what differs.
_MAX_SHOWN = 100
_MAX_SYMBOL = 1024
_MAX_ARGUMENTS = 48

# Namespaces that do not help to recognise a function.
_SAYING_NOTHING = frozenset(
    ("at", "cuda", "detail", "impl", "internal", "kernel", "kernels", "native")
)
_HOLE = re.compile(r"\{([^{}]+)\}")
_BLANKS = re.compile(r"  +")
_NUMBER = re.compile(r"-?\d{1,6}")
_SYMBOL = re.compile(r"[A-Za-z_][\w.]*")


def kernel_texts(names: Iterable[str]) -> dict[str, str]:
    """Return a text for each name; different names get different texts.

    They may depend on each other, but not on their order. A name that cannot be demangled is
    shortened as it is.
    """
    raw = sorted(set(names))
    full = _readable(raw)
    return told_apart({name: short_form(full.get(name, name)) for name in raw}, full)


def _readable(names: list[str]) -> dict[str, str]:
    try:
        return all_demangled(names)
    except BackendUnavailableError:  # no C++ library here
        return {}


def short_form(text: str) -> str:
    """Return the short form of a name that is demangled, unchanged if there is none.

    Different names may have the same form: `kernel_texts` tells them apart.
    """
    if "<" not in text and "(" not in text:
        return _symbol_form(text.removesuffix(".kd"))
    declaration = parse(text)
    if declaration is None:
        return _clipped(text)
    row = template_of(declaration.scope, declaration.name)
    if row is not None:
        shown = _filled(row.form, declaration)
        if shown is not None:
            return _clipped(shown)
    name = declaration.name
    if not declaration.arguments and (known := _symbol_form(name)) != name:
        return _clipped(known)
    within = declaration.scope.rpartition("::")[2]
    if within and within not in _SAYING_NOTHING and within.islower():
        name = f"{within}::{name}"
    return _clipped(f"{name}{_all_arguments(declaration)}")


def _clipped(text: str) -> str:
    """Return the text, without its middle if it is longer than `_MAX_SHOWN`."""
    if len(text) <= _MAX_SHOWN:
        return text
    return f"{text[: _MAX_SHOWN - 25]}…{text[-24:]}"


# -- C++ declarations ----------------------------------------------------------------------------
def _filled(form: str, declaration: Declaration) -> str | None:
    """Return the form with its holes filled, None if an operation is not known."""
    arguments = ", ".join(declaration.arguments)
    parts: list[str] = []
    place = 0
    for match in _HOLE.finditer(form):
        word, _, which = match[1].partition(":")
        value = _value(word, which, declaration, arguments=arguments)
        if value is None:
            return None
        parts += (form[place : match.start()], value)
        place = match.end()
    return _BLANKS.sub(" ", "".join((*parts, form[place:]))).strip()


@dataclass(frozen=True, slots=True)
class _Hole:
    """A hole and what may fill it.

    Attributes:
        declaration: The kernel.
        arguments: Its template arguments.
        which: Number of the argument that the hole is about, "" for all.
    """

    declaration: Declaration
    arguments: str
    which: str = ""

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def argument(self) -> str:
        place, arguments = int(self.which), self.declaration.arguments
        return arguments[place] if place < len(arguments) else ""

    @property
    def is_set(self) -> bool:
        return self.argument in ("true", "1")


def _value(word: str, which: str, declaration: Declaration, *, arguments: str) -> str | None:
    if word.isdigit():
        number = _Hole(declaration, arguments, word).argument
        return number if _NUMBER.fullmatch(number) else ""
    return _HOLES[word](_Hole(declaration, arguments, which))


def _type_in_brackets(hole: _Hole) -> str:
    if hole.which:  # of one argument, which may be a class without a type of numbers
        argument = hole.argument
        short = operand_type(argument) or without_scopes(argument[:40])
        return f"<{short}>" if argument else ""
    type_ = operand_type(hole.arguments)
    return f"<{type_}>" if type_ else ""


def _head(hole: _Hole) -> str | None:
    """Return the head dimension: the first number of the traits."""
    match = _NUMBER.search(hole.arguments.partition("<")[2])
    return None if match is None else match[0]


def _log(hole: _Hole) -> str:
    is_log = hole.is_set if hole.which else "LogSoftMax" in hole.arguments
    return "log_" if is_log else ""


def _rest(hole: _Hole) -> str:
    """Return the name after its first word, without the word kernel."""
    rest = hole.name.removeprefix("batch_norm_")
    rest = hole.name.partition("_")[2] if rest == hole.name else rest
    return rest.replace("_kernel", "").replace("backward", "bwd").replace("_", " ")


def _type(arguments: str) -> str:
    type_ = operand_type(arguments)
    if type_ in _INDEX_TYPES:  # sizes come before operands
        operands = _OPERAND.findall(arguments)
        type_ = next((_GEMM_TYPES.get(each) or scalar_type(each) for each in operands), type_)
    return _GEMM_TYPES.get(type_, type_)


def _all_arguments(declaration: Declaration) -> str:
    """Return the template arguments in short spelling, as many as fit."""
    shown: list[str] = []
    room = _MAX_ARGUMENTS
    for argument in declaration.arguments:
        short = without_scopes(argument[:400])
        room -= len(short) + 1
        if room < 0:
            shown.append(f"{short[: max(room + len(short), 12)]}…" if not shown else "…")
            break
        shown.append(short)
    return f"<{','.join(shown)}>" if shown else ""


def _variant(name: str) -> str:
    """Return what follows the family in a name: the pass of a sort, the way of a copy."""
    for start in _VARIANT_STARTS:
        if name.startswith(start):
            rest = name.removeprefix(start).removesuffix("Kernel").strip("_")
            return f" {_spaced(rest, '_')}" if rest else ""
    return ""


def _spaced(name: str, mark: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", mark, name).lower()


def _agent(declaration: Declaration) -> str:
    """Return the algorithm that a launcher runs: the first class among its arguments."""
    for argument in declaration.arguments:
        short = without_scopes(argument[:400]).partition("<")[0]
        if short.isidentifier() and short not in ("int", "true", "false"):
            return short.removesuffix("Agent").removesuffix("Kernel")
    return declaration.name


def _inner(declaration: Declaration, arguments: str) -> str:
    """Return the form of what a launcher of CUTLASS runs."""
    first = declaration.arguments[0] if declaration.arguments else ""
    if _SYMBOL.fullmatch(first[:_MAX_SYMBOL]) and len(first) <= _MAX_SYMBOL:
        return _symbol_form(first)
    type_ = _type(arguments)
    if "FlashAttnFwd" in first or "FlashAttnBwd" in first:
        way = "fwd" if "FlashAttnFwd" in first else "bwd"
        return f"flash3 {way} {type_} {_tile(first)}"
    kind = "conv" if "onvolution" in first or "Conv" in first else "gemm"
    if "Gemm" not in first and kind == "gemm":
        inner = parse(first)
        return f"{inner.name}{_all_arguments(inner)} (cutlass)" if inner else f"{first} (cutlass)"
    arch = _ARCHITECTURE.search(first)
    sm = f" sm{arch[1]}" if arch else ""
    return f"{kind} {type_} {_tile(first)} (cutlass{sm})"


_ARCHITECTURE = re.compile(r"[sS][mM]_?(\d{2,3})")
_SHAPE = re.compile(
    r"(?:GemmShape<(\d{1,4}), ?(\d{1,4}), ?(\d{1,4})>)|"
    r"(?:tuple<(?:cute::)?C<(\d{1,4})>, ?(?:cute::)?C<(\d{1,4})>, ?(?:cute::)?C<(\d{1,4})> ?>)"
)


def _tile(text: str) -> str:
    """Return the tile of a block: the first shape that is larger than a cluster's."""
    for match in _SHAPE.finditer(text):
        sizes = [each for each in match.groups() if each]
        if int(sizes[0]) * int(sizes[1]) > 64:
            return "x".join(sizes)
    return ""


_HOLES: dict[str, Callable[[_Hole], str | None]] = {
    "op": lambda hole: operation(hole.arguments) or None,
    "type": lambda hole: _type(hole.arguments),
    "<": _type_in_brackets,
    "<...>": lambda hole: _all_arguments(hole.declaration),
    "head": _head,
    "causal": lambda hole: " causal" if hole.is_set else "",
    "log": _log,
    "words": lambda hole: re.sub("(_cuda)?_kernel", "", hole.name).replace("_", " "),
    "rest": _rest,
    "own": lambda hole: hole.name.removesuffix("_kernel").removesuffix("Kernel"),
    "variant": lambda hole: _variant(hole.name),
    "cub": lambda hole: _spaced(hole.name.removeprefix("Device").removesuffix("Kernel"), " "),
    "agent": lambda hole: _agent(hole.declaration),
    "inner": lambda hole: _inner(hole.declaration, hole.arguments),
}
_VARIANT_STARTS = (
    "CatArrayBatchedCopy",
    "DeviceRadixSort",
    "DeviceSegmentedRadixSort",
    "DeviceMergeSort",
    "indexSelect",
    "tensor_kernel_scan",
)
_GEMM_TYPES = {"float": "f32", "double": "f64", "float2": "c64", "double2": "c128"}
_INDEX_TYPES = frozenset(("int", "int64", "uint32", "uint64", "bool"))
_OPERAND = re.compile(
    r"\b(?:float2|double2|(?:c10::|cutlass::)?(?:__half|Half|half_t|__nv_bfloat16|BFloat16|bfloat16_t)"
    r"|float|double)\b"
)


# -- names made of parts -------------------------------------------------------------------------
_TILE = re.compile(r"(\d{1,4}x\d{1,4}(?:x\d{1,4})?)(?:_(\d{1,4})x\d{1,3}(?!x))?")
_STAGES = re.compile(r"stages_(\d{1,4})x")
_LAYOUT = re.compile(r"_([ntc]{2})(?=_|\Z)")
_JET_LAYOUT = re.compile(r"_([NT]{2})[NT]{1,2}(?=_|\Z)")
_OUTPUT = re.compile(r"_(bf16|tf32|fp16|f16|f64|s8)(?=_)")
_GFX = re.compile(r"ISA_?(\d{3,4})")
_MACRO_TILE = re.compile(r"_MT(\d{1,4}x\d{1,4}x\d{1,4})")
_SM = re.compile(r"sm(\d{2,3})(?=_|\Z)")
_CHIPS = {
    "kepler": "sm30",
    "maxwell": "sm50",
    "pascal": "sm60",
    "volta": "sm70",
    "turing": "sm75",
    "ampere": "sm80",
    "ada": "sm89",
    "hopper": "sm90",
}
_LETTERS = {
    "s": "f32",
    "d": "f64",
    "h": "f16",
    "c": "c64",
    "z": "c128",
    "i": "i8",
    "H": "f16",
    "B": "bf16",
    "S": "f32",
    "D": "f64",
    "C": "c64",
    "Z": "c128",
    "I": "i32",
    "F": "f8",
    "X": "tf32",
}
_OPERANDS = {"fp16": "f16", "int8": "i8", "s8": "i8", "e4m3": "f8e4m3", "e5m2": "f8e5m2"}
_JET_TYPES = {"t": "bf16", "h": "f16", "s": "f32", "d": "f64", "q": "f8e4m3", "r": "f8e5m2"}
_NCCL_TYPES = (
    "f16|f32|f64|bf16|u8|i8|u32|i32|u64|i64|f8e4m3|f8e5m2|float|half|double|int8_t|uint8_t"
)
_NCCL_TYPE = re.compile(rf"_({_NCCL_TYPES})(?=_|\Z)")
_NCCL_REDUCTION = re.compile(r"_(Sum|Prod|Max|Min|MinMax|PreMulSum|SumPostDiv)(?=_|\Z)")
_NCCL_ALGORITHM = re.compile(
    r"_(RING|TREE|COLLNET_DIRECT|COLLNET_CHAIN|NVLS_TREE|NVLS|PAT)(?=_|\Z)"
)


def _symbol_form(name: str) -> str:
    """Return the form of a name that is not a declaration, unchanged if no row knows it."""
    if len(name) > _MAX_SYMBOL:
        return _clipped(name)
    for row in SYMBOLS:
        match = row.start.match(name)
        if match is not None:
            facts = _facts(name, match.groupdict(default=""))
            shown = row.form.format_map(facts)
            return _BLANKS.sub(" ", shown.replace(" )", ")")).strip()
    return _clipped(name) if len(name) > 2 * _MAX_SHOWN else name


def _facts(name: str, found: dict[str, str]) -> dict[str, str]:
    tile, layout = _TILE.search(name), _LAYOUT.search(name) or _JET_LAYOUT.search(name)
    stages, macro = _STAGES.search(name), _MACRO_TILE.search(name)
    size = ""
    if tile is not None:
        depth = tile[2] or (stages[1] if stages else "")
        size = f"{tile[1]}x{depth}" if depth and tile[1].count("x") == 1 else tile[1]
    gfx, arch = _GFX.search(name), _SM.search(name)
    algorithm = _NCCL_ALGORITHM.search(name)
    reduction = _NCCL_REDUCTION.search(name)
    number = found.get("number", "")
    what = found.get("what", "")
    sides = {"Ailk": "n", "Alik": "t", "Bljk": "n", "Bjlk": "t"}
    both = sides.get(found.get("a", ""), "") + sides.get(found.get("b", ""), "")
    return {
        **found,
        "dtype": _dtype(name, found),
        "tile": macro[1] if macro else size,
        "layout": both or (layout[1].lower() if layout else ""),
        "sm": _CHIPS.get(found.get("chip", ""), f"sm{number}" if number else _arch(arch, found)),
        "kind": "gemm" if what in ("gemm", "") else f"conv {what}",
        "what": what.replace("_", " "),
        "library": "cudnn" if "cudnn" in name or what != "gemm" else "cublas",
        "way": "fwd" if found.get("way", "").lower() == "f" else "bwd",
        "algorithm": algorithm[1].lower().replace("_", " ") if algorithm else "",
        "reduction": reduction[1].lower() if reduction else "",
        "gfx": f"gfx{gfx[1]}" if gfx and gfx[1] != "000" else "",
        "words": found.get("words", "").replace("_", " "),
    }


def _arch(arch: re.Match[str] | None, found: dict[str, str]) -> str:
    if arch is not None:
        return f"sm{arch[1]}"
    return "sm90" if "jet" in found else ""


def _dtype(name: str, found: dict[str, str]) -> str:
    if "nccl" in found:
        match = _NCCL_TYPE.search(name)
        return match[1] if match else ""
    if "jet" in found:
        return _JET_TYPES.get(found["jet"][0], "")
    if "tensile" in found:
        return _LETTERS.get(found["tensile"][0], "")
    operand = found.get("operand", "")
    if operand:
        return _OPERANDS.get(operand, operand)
    output = _OUTPUT.search(name)
    if output is not None and found.get("letter") == "s":
        return _OPERANDS.get(output[1], output[1])
    return _LETTERS.get(found.get("letter", ""), "")
