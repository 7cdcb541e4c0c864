"""What an elementwise kernel or a reduction computes, from its template arguments.

PyTorch passes the operation as a functor or a lambda, several wrappers deep: the wrapper's template
arguments, or the function around a lambda, name it.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass

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


# Wrappers are not deeper.
_MAX_CHARACTERS = 1500
_WORD = re.compile(r"[A-Za-z_]\w*")
# Namespaces, types, wrappers and the machinery around an operation.
_NOISE_WORDS = """
__half __nv_bfloat16 a accscalar_t array Array at AUnaryFunctor AUnaryFunctorWithOp BFloat16
bfloat16_t binary_internal BinaryFunctor bool BUnaryFunctor c10 char complex const cuda cutlass
detail distribution_elementwise_grid_stride_kernel distribution_nullary_kernel
distribution_unary_kernel double enable_if false float Float8_e4m3fn Float8_e4m3fnuz Float8_e5m2
Float8_e5m2fnuz Float8_e8m0fnu func_wrapper_t FusedOptimizerTensorListMetadata gpu_index_kernel
gpu_kernel gpu_kernel_impl gpu_kernel_impl_nocast gpu_kernel_with_index gpu_kernel_with_scalars
gpu_reduce_kernel Half half_t hip implementation int int64_t integral_constant is_same lambda
LoadWithCast LoadWithoutCast long memory mt multi_tensor_apply native nocast OffsetCalculator
operator opmath_gpu_kernel_with_scalars opmath_symmetric_gpu_kernel_with_scalars opportunistic pair
ReduceJitOp ReduceOp short signed std StoreWithCast StoreWithoutCast
symmetric_gpu_kernel_with_scalars templates TensorIterator TensorIteratorBase TensorListMetadata
TensorListScalarListMetadata thrust TrivialOffsetCalculator true tuple type unsigned value void
"""
_NOISE = frozenset(_NOISE_WORDS.split())
_WRAPPER = re.compile(r"(?:Unary|Binary|Pointwise|Ternary)Op\w*Functor_?\Z")
_ON_SCALAR = re.compile(r"\b(?:AUnaryFunctor|BUnaryFunctor|CUDAFunctorOn(?:Self|Other)_)")
_PREFIX = re.compile(r"\A(?:CUDAFunctor(?:OnSelf|OnOther)?_|launch_|_+)")
_SUFFIX = re.compile(
    r"(?:_?kernel_cuda_impl|_?kernel_cuda|_?kernel_impl|CUDAKernelImpl|KernelImpl|CUDAKernel|"
    r"_cuda_kernel|_kernel|Kernel|MathFunctor|_functor|Functor|Ops|Op|_cuda|_out|_)\Z"
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LAUNCHER = re.compile(r"\bgpu_\w{0,60}<")
_BRACKET = re.compile(r"->|operator ?(?:<<|>>|<=|>=|<|>|->)|[<>]")
_LAMBDA = re.compile(r"lambda\(([^(){}]{1,200})\)#")


def operation(arguments: str) -> str:
    """Return the operation in template arguments: ``CUDAFunctor_add<float>`` is ``add``.

    Args:
        arguments: Template arguments, without namespaces or with them.

    Returns:
        Words in lower case, "" if nothing but wrappers is there.
    """
    for match in _WORD.finditer(arguments, 0, _MAX_CHARACTERS):
        word = match[0]
        if word in _NOISE or (len(word) > 12 and _WRAPPER.match(word)):
            continue
        return _words(word) + (" scalar" if _ON_SCALAR.search(arguments) else "")
    return ""


def operand_type(arguments: str) -> str:
    """Return the type of the operands: that of a lambda, else the first one; "" for none."""
    arguments = _without_launcher(arguments)
    if "lambda(" in arguments:
        found = _LAMBDA.findall(arguments)
        if found:
            return scalar_type(found[0]) or scalar_type(arguments)
    return scalar_type(arguments)


def _without_launcher(arguments: str) -> str:
    """Return the template arguments of a launcher, without its own lambda, which takes an index."""
    match = _LAUNCHER.search(arguments)
    if match is None:
        return arguments
    depth = 1
    for bracket in _BRACKET.finditer(arguments, match.end()):
        depth += {"<": 1, ">": -1}.get(bracket[0], 0)
        if not depth:
            return arguments[match.end() : bracket.start()]
    return arguments[match.end() :]


@functools.lru_cache(maxsize=4096)
def _words(word: str) -> str:
    bare = _PREFIX.sub("", word)
    while True:
        shorter = _SUFFIX.sub("", bare)
        if shorter == bare or not shorter:
            break
        bare = shorter
    return _CAPITAL.sub("_", bare).lower().removeprefix("direct_") or word
