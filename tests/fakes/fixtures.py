"""Fixtures with the doubles of vendors' libraries; import them where they are used."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.amd_doubles import AmdDoubles, amd_doubles
from fakes.doubles import Doubles, NoCompilerError, doubles

# Kept between runs, like the other builds; rebuilt when a source is newer.
BUILD = Path(__file__).parents[2] / "build" / "doubles"


@pytest.fixture(scope="session")
def cupti_doubles() -> Doubles:
    """The doubles of libcuda and of libcupti 12.8; skips where there is no compiler."""
    try:
        return doubles(BUILD)
    except NoCompilerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cupti13_doubles() -> Doubles:
    """The doubles with what libcupti 13 adds; its version is set with FAKE_CUPTI_VERSION."""
    try:
        return doubles(BUILD, with_subscribe_v2=True)
    except NoCompilerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def rocm_doubles() -> AmdDoubles:
    """The doubles of HIP, ROCr, roctracer, rocprofiler-sdk and libroctx64."""
    try:
        return amd_doubles(BUILD)
    except NoCompilerError as error:
        pytest.skip(str(error))
