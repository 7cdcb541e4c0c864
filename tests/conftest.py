"""Every test starts from a clean environment, so that the caller's shell cannot change a result."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from sweeps import IS_WHOLE, how_many, some

# Workers of the test run share the processors already. Threads of torch and BLAS that wait for one
# another spin, which doubled the processor time of programs with torch.
os.environ["OMP_NUM_THREADS"] = "1"

# On a busy machine generated examples take longer than hypothesis allows by default. They are the
# same in every run, so that a failure is due to a change.
settings.register_profile(
    "patient",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=how_many(50, 10),
)
# `--hypothesis-profile=thorough` draws other examples in every run: use it before a release.
settings.register_profile(
    "thorough", settings.get_profile("patient"), derandomize=False, max_examples=500
)
settings.load_profile("patient")

# Variables that this package and the programs of tests read. Paths of devices, compilers and
# packages stay.
_PREFIXES = (
    *("PROTON_", "TRITON_PROTON_", "GITHUB_", "GIT_", "LC_", "CLICOLOR", "TTY_", "RICH_", "TYPER_"),
    *("OMPI_COMM_", "MV2_COMM_", "PALS_", "JSM_", "PMI_", "PMIX_", "SLURM_", "TORCHELASTIC_"),
)
_NAMES = (
    *("TRITON_INTERPRET", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"),
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("NO_COLOR", "FORCE_COLOR", "PY_COLORS", "COLORTERM", "TERM", "COLUMNS", "LINES"),
    *("LANG", "LANGUAGE", "CI", "BUILD_NUMBER", "PAGER", "BROWSER", "SOURCE_DATE_EPOCH"),
    *("PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_THEME", "PYTEST_DEBUG"),
    *("PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONINSPECT"),
    *("PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONSTARTUP", "PYTHONUNBUFFERED"),
    *("PYTHONUTF8", "PYTHONVERBOSE", "PYTHONWARNINGS", "PYTHONCOERCECLOCALE", "PYTHONFAULTHANDLER"),
    *("PYTHONTRACEMALLOC", "PYTHONASYNCIODEBUG", "PYTHONBREAKPOINT", "PYTHONPROFILEIMPORTTIME"),
    *("DEBUG", "PWDEBUG", "DASK_SCHEDULER_ADDRESS"),  # the last by --scheduler too
)
_CHILD_OPTIONS = "-p no:hypothesispytest -p no:syrupy"


@pytest.fixture(scope="session")
def child_options() -> str:
    """Options that keep a pytest process from loading what takes most of its time."""
    return _CHILD_OPTIONS


def _clean(patch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(_PREFIXES) or name in _NAMES:
            patch.delenv(name)
    patch.setenv("LC_ALL", "C.UTF-8")  # other programs speak English
    patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    patch.setenv("PROTON_BENCH_CHECK", "1")  # no file that any test reads may contradict itself
    # Tests compare what was recorded, to the row. Those of samples of the host switch them on.
    patch.setenv("PROTON_BENCH_HOST_SAMPLES", "off")
    patch.setenv("PYTEST_ADDOPTS", _CHILD_OPTIONS)
    # Inductor would compile four programs to ask which vector instructions there are.
    patch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")
    # The default of every release so far; Triton 3.9 warns if it is not set.
    patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.fixture(scope="session", autouse=True)
def clean_environment_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Unset what could change a result, before fixtures of many tests start programs."""
    with pytest.MonkeyPatch.context() as patch:
        _clean(patch)
        # Measurements take turns by a file there, which other runs of the tests must not hold.
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset it again for each test."""
    _clean(monkeypatch)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long tests first, and keep a few cases of each sweep.

    `make nightly`, and a test that is named, run all cases.
    """
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    if IS_WHOLE or any("::" in word for word in config.args):
        return
    sweeps: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("nightly") is not None:
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = set()
    for cases in sweeps.values():
        marker = cases[0].get_closest_marker("nightly")
        keep = marker.kwargs.get("keep", 0) if marker is not None else 0
        left_out |= {*cases} - {*some(cases, keep)}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Leave the modules and tests out of what Python's garbage collector looks at.

    They live until the end. A session looks among all objects for kernels that were loaded before
    it, and that took 0.2 s beside the 800 000 objects of all tests.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries in C++ look for what they leak
