"""The options of ``proton run`` for the bare runner, passed across the exec."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from proton_bench.recording.launcher.target import TargetKind

if TYPE_CHECKING:
    from proton_bench.recording.session.options import SessionOptions


_BOOTSTRAP = os.path.join(os.path.dirname(__file__), "bootstrap.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of ``proton run``, passed across the exec.

    Attributes:
        kind: Kind of ``target``.
        target: Path, module name or source text.
        name: Output name without a suffix, absolute; "" and "-" mean stdout.
        template: The name as given by the user, without a suffix: children fill in its fields
            themselves.
        folder: Current folder of the command line; "" if it was removed.
        formats: Formats of the files to write.
        context: Where call paths come from, as in ``start``.
        data: Kind of data, ``tree`` or ``trace``.
        backend: Names joined by ``+``; None asks the plugins.
        mode: Mode text for the backend that declares it.
        instrument: Passes over kernels; "" for none.
        hook: Name of a launch hook, or None.
        compat: ``triton.profiler`` resolves to this package.
        interpret: Backends may prepare the process, e.g. switch Triton to its interpreter.
        children: Python processes that the target starts are recorded too.
        quiet: Only errors are printed.
        strict: A profile that cannot be written changes the exit code.
        needs_records: So does a program that ends well and recorded nothing.
        command: Command line for the provenance.
        first_folders: Folders that come first in the module search path.
        revision: Commit that these folders are a checkout of; "" for the code in ``folder``.
        modules_file: File for the list of loaded modules; "" for none.
        canary: Run canary kernels for a gate.
        windows: When to record, as `WindowPlan.read` takes it; {} for the whole run.
    """

    kind: TargetKind
    target: str
    name: str
    formats: tuple[str, ...]
    template: str = ""
    folder: str = ""
    context: str = "shadow"
    data: str = "tree"
    backend: str | None = None
    mode: str | None = None
    instrument: str = ""
    hook: str | None = None
    compat: bool = True
    interpret: bool = True
    children: bool = True
    quiet: bool = False
    strict: bool = False
    needs_records: bool = False
    command: tuple[str, ...] = ()
    first_folders: tuple[str, ...] = ()
    revision: str = ""
    modules_file: str = ""
    canary: bool = False
    windows: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Encode as one ASCII line; undecodable bytes of file names are kept."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RunOptions:
        """Decode the text of ``to_json``."""
        fields = json.loads(text)
        fields["kind"] = TargetKind(fields["kind"])
        for name in ("formats", "command", "first_folders"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


def current_folder() -> str:
    """Return the current folder, "" if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def runner_command(
    options: RunOptions, arguments: Sequence[str], flags: Sequence[str] = ()
) -> list[str]:
    """Return the command that runs a target, for ``os.execv``.

    Args:
        options: What to run and how to record it.
        arguments: The target's own arguments; separate, because one argument may have 128 KiB.
        flags: Options for the interpreter.
    """
    return [sys.executable, *flags, _BOOTSTRAP, options.to_json(), *arguments]


def with_passes(options: RunOptions) -> RunOptions:
    """Return options whose backend and mode include the passes of ``instrument``.

    Raises:
        ProtonError: See ``add_passes``.
    """
    if not options.instrument:
        return options
    from proton_bench.recording.kernels.instrument import add_passes

    backend, mode = add_passes(options.backend, options.mode, options.instrument)
    return replace(options, backend=backend, mode=mode, instrument="")


def session_options(options: RunOptions) -> SessionOptions:
    """Return the options of the run's own session."""
    from proton_bench.recording.session.options import SessionOptions
    from proton_bench.recording.session.output_format import trace_formats_of

    is_code = options.kind is TargetKind.CODE
    return SessionOptions(
        name=options.name,
        context=options.context,
        data=options.data,
        backend=options.backend,
        mode=options.mode,
        hook=options.hook,
        command=options.command,
        revision=options.revision,
        trace_formats=trace_formats_of(options.formats, options.data),
        samples_host=True,
        program="python" if is_code else os.path.basename(options.target),
    )
