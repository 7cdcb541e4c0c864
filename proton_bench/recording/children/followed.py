"""Decides whether to record Python children of a run, and names their files."""

from __future__ import annotations

import os
import time

from proton_bench.errors import UsageError
from proton_bench.recording.children.children import (
    ChildOptions,
    files_of_children,
    follow_children,
    forget_children,
)
from proton_bench.recording.launcher.run_options import RunOptions, session_options
from proton_bench.recording.stderr import say, shown_path, warn

__all__ = ["FollowedChildren"]

_NO_CHILD = (
    "no profile was written: no Python process of the program recorded anything, or they ran "
    "with -I, -E or -S, or without proton_bench"
)
_MAX_SHOWN = 4  # files that are named


class FollowedChildren:
    """The Python processes that the target starts.

    Args:
        options: Of the run; the environment of this process follows from them.
    """

    def __init__(self, options: RunOptions) -> None:
        from proton_bench.recording.session.session import is_disabled

        self._options = options
        self._started_ns = time.time_ns()
        self._are_followed = options.children and not is_disabled() and not self._on_stdout
        if self._are_followed:
            follow_children(self._child_options(), os.environ)
        else:
            forget_children(os.environ)

    @property
    def _on_stdout(self) -> bool:
        return self._options.name in ("", "-")

    def check(self) -> None:
        """Check before the start that children can be recorded.

        Raises:
            ProtonError: An option is wrong, or the output cannot be written.
        """
        from proton_bench.recording.session.options import plan_capture
        from proton_bench.recording.session.output import check_writable
        from proton_bench.recording.session.output_format import check_formats

        if self._on_stdout:
            raise UsageError(
                "the processes of a program cannot share stdout for their profiles: "
                "name a file with -n or -o"
            )
        if not self._options.children:
            raise UsageError(
                "a program is recorded through its Python children: leave --no-children out"
            )
        if self._are_followed:
            plan = plan_capture(session_options(self._options))
            check_formats(self._options.formats, plan.data, plan.writable_timelines)
            check_writable(self._options.name)

    def report(self, *, warns: bool = False) -> bool:
        """Print the files of children; with ``warns`` also if there are none.

        Returns:
            Whether there are any.
        """
        if not self._are_followed:
            return False
        options = self._options
        paths = files_of_children(options.name, options.formats, self._started_ns)
        if paths:
            shown = ", ".join(shown_path(path, options.folder) for path in paths[:_MAX_SHOWN])
            rest = len(paths) - _MAX_SHOWN
            say(f"children wrote {shown}" + (f" and {rest} more" if rest > 0 else ""))
        elif warns and "{" not in options.template:
            warn(_NO_CHILD)
        return bool(paths)

    def _child_options(self) -> ChildOptions:
        options = self._options
        return ChildOptions(
            name=options.template or options.name,
            folder=options.folder,
            formats=options.formats,
            started_ns=self._started_ns,
            context=options.context,
            data=options.data,
            backend=options.backend,
            mode=options.mode,
            hook=options.hook,
            revision=options.revision,
            compat=options.compat,
        )
