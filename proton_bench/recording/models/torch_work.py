"""Shapes of operators, and the work that torch's own formulas compute from them."""

from __future__ import annotations

import ast
import atexit
import contextlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proton_bench.recording.context.metric import own_operators
from proton_bench.recording.models.input_probe import short_name
from proton_bench.recording.native import native
from proton_bench.recording.stderr import say

_TENSOR = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
_WIDTHS = (8, 16, 32, 64)
_BITS = 8


class _State:
    """What was computed so far, in this process."""

    valued = 0  # works
    needs_more: Mapping[str, bool] = {}


def read_inputs(layout: Mapping[str, Any] | None) -> bool:
    """Have arguments of operators read from now on.

    Args:
        layout: What the probe found; None for nothing.

    Returns:
        Whether they are.
    """
    if layout is None:
        return False
    if _State.needs_more:
        return True  # as before
    operators = [(name, needs_more) for name, needs_more in layout["operators"]]
    _State.needs_more = dict(operators)
    dtypes, tensor = dict(layout["dtypes"]), sys.modules["torch"].Tensor
    native.read_torch_inputs(layout["offsets"], layout["tags"], dtypes, operators, tensor)
    # Torch's own handlers, which are older and so run later, take kernels of meta tensors away.
    atexit.register(value_works)
    return True


def value_works() -> None:
    """Compute what the operators recorded so far do, once for each set of shapes."""
    works = native.works(_State.valued)
    if not works or "torch" not in sys.modules:
        return
    values: list[tuple[str, int] | None] = []
    with own_operators(), _without_modes():
        try:
            formulas = _Formulas()
            values = [formulas.value(name, signature) for name, signature in works]
            for name, signature in formulas.refused.items():
                say(f"note: no flops of some {name}: torch's formula refuses {signature}")
        except Exception as error:  # noqa: BLE001 - a torch with other formulas, or an end without imports
            say(f"note: no flops of operators: {type(error).__name__}: {error}")
            values = [None] * len(works)
    native.set_work_values(_State.valued, values)
    _State.valued += len(works)


def _without_modes() -> contextlib.AbstractContextManager[object]:
    """Return what keeps modes of the program, such as its own FlopCounterMode, from seeing ours."""
    try:
        from torch.utils._python_dispatch import _disable_current_modes
    except ImportError:  # a torch without it
        return contextlib.nullcontext()
    modes: contextlib.AbstractContextManager[object] = _disable_current_modes()
    return modes


class _Formulas:
    """Torch's formulas, applied to tensors without memory."""

    def __init__(self) -> None:
        import torch
        from torch.utils.flop_counter import flop_registry

        self._torch = torch
        self.refused: dict[str, str] = {}  # the newest signature by operator
        self._formulas = {
            getattr(packet, "_qualified_op_name", ""): (packet, formula)
            for packet, formula in flop_registry.items()
        }
        self._dtypes = {
            short_name(name): kind
            for name, kind in vars(torch).items()
            if isinstance(kind, torch.dtype) and str(kind) == f"torch.{name}"
        }

    def value(self, name: str, signature: str) -> tuple[str, int] | None:
        """Return the metric of an operator and its amount per call, None if unknown."""
        try:
            arguments = [self._made(each) for each in read_signature(signature)]
            packet, formula = self._formulas[name]
            out, used = None, arguments
            if _State.needs_more.get(name, True):
                with contextlib.suppress(Exception), self._torch.no_grad():
                    out = packet(*arguments)
            else:  # without the tensor that `out=` gave
                used = arguments[: self._parameters(formula)]
            flops = int(formula(*used, out_val=out))
            dtype = next(_tensors(arguments, self._torch.Tensor)).dtype
        except Exception:  # noqa: BLE001 - shapes that a formula is not made for
            self.refused[name] = signature
            return None
        bits = dtype.itemsize * _BITS // (2 if dtype.is_complex else 1)
        width = next((width for width in _WIDTHS if width >= bits), _WIDTHS[-1])
        return f"flops{width}", flops

    @staticmethod
    def _parameters(formula: Any) -> int:
        named = inspect.signature(formula).parameters.values()
        plain = [each for each in named if each.kind is each.POSITIONAL_OR_KEYWORD]
        return sum(each.name != "out_shape" for each in plain)

    def _made(self, argument: Any) -> Any:
        if isinstance(argument, tuple):
            dtype, shape = argument
            return self._torch.empty(shape, dtype=self._dtypes[dtype], device="meta")
        return [self._made(each) for each in argument] if isinstance(argument, list) else argument


def read_signature(signature: str) -> list[Any]:
    """Return the arguments in a signature; tensors are pairs of the type's name and the sizes.

    Args:
        signature: Such as ``f32[8,4], None, [1,1]``.

    Raises:
        ValueError: It is not one, or was cut.
        SyntaxError: Same.
    """
    text = _TENSOR.sub(r"('\1', [\2])", signature)
    return list(ast.literal_eval(f"[{text}]"))


def _tensors(arguments: Sequence[Any], kind: type) -> Iterator[Any]:
    for each in arguments:
        if isinstance(each, list):
            yield from _tensors(each, kind)
        elif isinstance(each, kind):
            yield each
