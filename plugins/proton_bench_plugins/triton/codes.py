"""Registers the compiled code and configuration of functions on a device with the native side.

Of code whose assembly Triton keeps, the instructions are counted as well: once, when it is loaded.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from proton_bench import _native
from proton_bench_plugins.patch import Patch

# Classes of loaded kernels: those of the module that have the method.
_LOADED_KINDS = {
    "triton.compiler.compiler": "_init_handles",
    "torch._inductor.runtime.static_triton_launcher": "load_kernel",
}
# Further facts of a configuration to write, and their defaults.
_COMPILE_OPTIONS = {"num_warps": None, "num_stages": None, "num_ctas": 1, "maxnreg": None}
_HASH_DIGITS = 16  # of 64 bits
# Assemblies, as Triton names them: NVIDIA's and AMD's.
_ASSEMBLIES = ("ptx", "amdgcn")

_known: dict[int, tuple[str, object]] = {}


def note(kernel: Any, config: object = None) -> None:
    """Note a compiled kernel, if it is loaded and not known yet.

    Args:
        kernel: ``CompiledKernel``, or Inductor's form of one, or None.
        config: The configuration that an autotuner chose for it, if any.
    """
    function = getattr(kernel, "function", None)
    if not isinstance(function, int) or function == 0:
        return
    text = str(getattr(kernel, "hash", ""))
    known = _known.get(function)
    if known is not None and known[0] == text and (config is None or known[1] is config):
        return
    _known[function] = (text, config)
    note_function(function, text, config_text(config))
    texts = getattr(kernel, "asm", None) or {}
    for language in _ASSEMBLIES:
        if language in texts:
            _note_text(text, texts[language], language)


def note_function(function: int, code: str, config: str = "") -> None:
    """Note the code of a function.

    Args:
        function: Address of the loaded function.
        code: Triton's hash of the compiled kernel, hexadecimal digits.
        config: Choice of an autotuner for it.
    """
    if code:
        _native.set_kernel_hash(function, _first_64_bits(code), config)


def note_files(code: str, files: Iterable[str | Path]) -> None:
    """Count the instructions of a code, if the compiler left its assembly.

    Args:
        code: Triton's hash of the compiled kernel.
        files: What the compiler wrote for it.
    """
    for file in map(Path, files):
        if file.suffix[1:] in _ASSEMBLIES:
            with contextlib.suppress(OSError):  # its cache may be cleared
                _note_text(code, file.read_bytes(), file.suffix[1:])


def watch_static_launcher(module: ModuleType) -> Sequence[Patch]:
    """Count the instructions of kernels that Inductor loads itself.

    Args:
        module: ``torch._inductor.runtime.static_triton_launcher``.
    """
    return [
        Patch(each, "load_kernel", _load_kernel)
        for each in vars(module).values()
        if isinstance(each, type) and "load_kernel" in vars(each)
    ]


def _load_kernel(original: Any, kernel: Any, *args: Any, **kwargs: Any) -> Any:
    binary = getattr(kernel, "cubin_path", None)  # forgotten once it is loaded
    found = original(kernel, *args, **kwargs)
    if isinstance(binary, str):
        beside = [Path(binary).with_suffix(f".{each}") for each in _ASSEMBLIES]
        note_files(str(getattr(kernel, "hash", "")), beside)
    return found


def _note_text(code: str, text: Any, language: str) -> None:
    if code and isinstance(text, str | bytes):
        _native.note_instructions(_first_64_bits(code), text, language)


def note_loaded() -> None:
    """Note every kernel that was loaded before the observer was attached."""
    kinds = set(_loaded_kinds())
    if not kinds:
        return
    for candidate in gc.get_objects():
        if type(candidate) in kinds:
            note(candidate)


def config_text(config: object) -> str:
    """Return a configuration on one line, as in ``BLOCK=64, num_warps=4, num_stages=3``."""
    if config is None:
        return ""
    values: dict[str, object] = dict(getattr(config, "kwargs", None) or {})
    for option, usual in _COMPILE_OPTIONS.items():
        value = getattr(config, option, None)
        if value is not None and value != usual:
            values.setdefault(option, value)
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _first_64_bits(code: str) -> int:
    try:
        return int(code[:_HASH_DIGITS], 16)
    except ValueError:
        return int(hashlib.sha256(code.encode()).hexdigest()[:_HASH_DIGITS], 16)


def _loaded_kinds() -> Iterator[type]:
    for name, method in _LOADED_KINDS.items():
        module = sys.modules.get(name)
        for candidate in list(vars(module).values()) if module is not None else []:
            if isinstance(candidate, type) and hasattr(candidate, method):
                yield candidate
