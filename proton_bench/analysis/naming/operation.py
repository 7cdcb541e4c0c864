"""What an elementwise kernel or a reduction computes, from its template arguments.

PyTorch passes the operation as a functor or a lambda, several wrappers deep: the wrapper's template
arguments, or the function around a lambda, name it.
"""

from __future__ import annotations

import functools
import re

from proton_bench.analysis.naming.declaration import scalar_type

__all__ = ["operand_type", "operation"]

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
