"""The one exception tree of proton_bench.

::

    ProtonError                      70  anything this package raises on purpose
    |-- UsageError      (ValueError)  2  wrong argument, option, name or configuration
    |   |-- MetricError               2  unknown metric, or a value of another type than before
    |   |   `-- UnknownMetricError (RuntimeError) 2  a profile has no such metric
    |   |-- ScopeError                2  scopes, states or ops that are not balanced
    |   `-- EmptyProfileError         5  a profile in which nothing was recorded
    |-- SessionError    (IndexError)  2  unknown session or phase
    |-- ProfileFormatError (ValueError) 2  a file that is corrupt, hostile or of an unknown version
    |-- OutputError     (OSError)    74  a profile that cannot be written
    |-- TargetFailedError (RuntimeError) 2 a measured program failed
    |-- InterruptedExperimentError 128+n a signal ended an experiment; finished runs are kept
    |-- BackendUnavailableError (RuntimeError) 69  library, driver, device or privilege missing
    |-- NativeModuleError (ImportError) 69  the compiled module is absent or does not load
    |-- MissingExtraError (ImportError) 69  an optional dependency is not installed
    `-- PluginError     (RuntimeError) 70  a plugin that is broken or breaks its contract

Each class doubles as the built-in exception that upstream's API raises in the same place, so
``except ValueError`` in existing scripts keeps working. ``exit_code`` is what the command line
returns when the error ends a command. Only ``cli``, ``pytest_plugin`` and its ``testrun`` catch
``ProtonError``.
"""

from __future__ import annotations

from proton_bench.support.text import visible, visible_lines

__all__ = [
    "BackendUnavailableError",
    "EmptyProfileError",
    "InterruptedExperimentError",
    "MetricError",
    "MissingExtraError",
    "NativeModuleError",
    "OutputError",
    "PluginError",
    "ProfileFormatError",
    "ProtonError",
    "ScopeError",
    "SessionError",
    "TargetFailedError",
    "UnknownMetricError",
    "UsageError",
]

_MAX_MESSAGE = 16384  # characters


class ProtonError(Exception):
    """Base of every error that proton_bench raises on purpose."""

    exit_code = 70

    def __str__(self) -> str:
        """Return the message on one line, with names and errors from elsewhere escaped."""
        return visible(super().__str__(), _MAX_MESSAGE)

    def report(self) -> str:
        """Return the message with its notes from `add_note`, such as the end of a log."""
        return visible_lines("\n".join([str(self), *getattr(self, "__notes__", ())]))


class UsageError(ProtonError, ValueError):
    """An argument, option, name or configuration value is wrong."""

    exit_code = 2


class MetricError(UsageError):
    """A metric is unknown, or its value does not fit what was recorded before."""


class UnknownMetricError(MetricError, RuntimeError):
    """A profile has no metric of this name."""


class ScopeError(UsageError):
    """Scopes, states or ops are not balanced."""


class EmptyProfileError(UsageError):
    """Nothing was recorded."""

    exit_code = 5


class SessionError(ProtonError, IndexError):
    """A session or phase does not exist."""

    exit_code = 2


class ProfileFormatError(ProtonError, ValueError):
    """A profile file is corrupt, hostile, or of a version this release cannot read."""

    exit_code = 2


class OutputError(ProtonError, OSError):
    """A file cannot be written."""

    exit_code = 74


class TargetFailedError(ProtonError, RuntimeError):
    """A measured program failed, or recorded nothing."""

    exit_code = 2


class InterruptedExperimentError(ProtonError):
    """A signal ended an experiment.

    Args:
        signal: Its number.
        message: What was kept and how to continue.
    """

    exit_code = 130

    def __init__(self, signal: int, message: str = "interrupted") -> None:
        super().__init__(message)
        self.signal = signal
        self.exit_code = 128 + signal


class BackendUnavailableError(ProtonError, RuntimeError):
    """A backend cannot run here: its library, driver, device or privilege is missing."""

    exit_code = 69


class NativeModuleError(ProtonError, ImportError):
    """The compiled module is missing or does not load, so nothing can be recorded."""

    exit_code = 69


class MissingExtraError(ProtonError, ImportError):
    """An optional dependency is needed and not installed."""

    exit_code = 69


class PluginError(ProtonError, RuntimeError):
    """A plugin is broken or breaks the contract of its hook."""
