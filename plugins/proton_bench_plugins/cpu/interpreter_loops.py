"""Lets the interpreter run loops with bounds known only at run time, with every numpy.

The interpreter keeps a scalar in an array of one element. Triton 3.6 passes such a bound to
``int``, which numpy warns about and, since 2.4, rejects; later releases extract the element.
"""

from __future__ import annotations

import operator
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

__all__ = ["mend_loop_bounds"]


def mend_loop_bounds(module: ModuleType) -> bool:
    """Make an interpreter that cannot use a scalar as a loop bound extract the element.

    It stays for the rest of the process: a program that could loop while it was profiled must not
    fail once profiling is paused.

    Args:
        module: ``triton.runtime.interpreter``.

    Returns:
        True if the interpreter needed it.
    """
    if _can_loop(module):
        return False
    patch_tensor = module._patch_lang_tensor

    def patch_tensor_and_bounds(tensor: type, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda scalar: int(scalar.handle.data.item()))

    vars(module)["_patch_lang_tensor"] = patch_tensor_and_bounds
    return True


def _can_loop(module: ModuleType) -> bool:
    """Give a class of ours what the interpreter gives Triton's tensor, and use it as a bound."""
    import numpy as np

    class Scalar:
        handle = SimpleNamespace(data=np.zeros(1, dtype=np.int32))

    try:
        module._patch_lang_tensor(Scalar, SimpleNamespace(set_attr=setattr))
    except (AttributeError, TypeError):
        return True  # an unknown interpreter: do not change it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return operator.index(Scalar()) == 0  # type: ignore[arg-type]
        except (TypeError, DeprecationWarning):
            return False
