# The public names, for type checkers; __init__.py looks them up on first use.
from proton_bench import context as context
from proton_bench import data as data
from proton_bench import errors as errors
from proton_bench import flags as flags
from proton_bench import hooks as hooks
from proton_bench import language as language
from proton_bench import metric as metric
from proton_bench import mode as mode
from proton_bench import specs as specs
from proton_bench import viewer as viewer
from proton_bench.formats.registry import read_profile as open_profile
from proton_bench.model.profile import Profile
from proton_bench.recording.context.scope import (
    cpu_timed_scope,
    enter_scope,
    exit_scope,
    scope,
)
from proton_bench.recording.context.state import enter_state, exit_state, metadata_state, state
from proton_bench.recording.profiled import last, profiled
from proton_bench.recording.session.session import (
    DEFAULT_PROFILE_NAME,
    activate,
    deactivate,
    finalize,
    profile,
    start,
)
from proton_bench.recording.session.steps import step
from proton_bench.recording.session.windows import schedule
from proton_bench.rounds.bench import bench

__version__: str

def load_ipython_extension(shell: object) -> None: ...

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "Profile",
    "__version__",
    "activate",
    "bench",
    "context",
    "cpu_timed_scope",
    "data",
    "deactivate",
    "enter_scope",
    "enter_state",
    "errors",
    "exit_scope",
    "exit_state",
    "finalize",
    "flags",
    "hooks",
    "language",
    "last",
    "metadata_state",
    "metric",
    "mode",
    "open_profile",
    "profile",
    "profiled",
    "schedule",
    "scope",
    "specs",
    "start",
    "state",
    "step",
    "viewer",
]
