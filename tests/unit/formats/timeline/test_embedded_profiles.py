"""Profiles that sessions leave in their timelines, in both formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import session_chrome
from fakes.perfetto import SessionTrace
from reference.profile_view import values_by_path

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import decode_profile
from proton_bench.model.profile import Profile

PROFILE = (Path(__file__).parents[3] / "data" / "golden" / "profile.proton").read_bytes()
# Its rows are found in neither timeline below, so that it is known where rows come from.
WHOLE = decode_profile(PROFILE, "x.proton")


def perfetto(*embedded: bytes, piece: int = 1 << 20, rank: int | None = None) -> bytes:
    """Return a timeline with one kernel, and profiles at its end."""
    session = SessionTrace(rank)
    session.slice(session.stream(), 10, 20, ["step", "k"], "kernel")
    for each in embedded:
        session.embed(each, piece=piece)
    return session.finish()


def chrome(*embedded: bytes, piece: int = 1 << 20) -> bytes:
    """Return the same in Chrome's format."""
    events = session_chrome.kernel(["step", "k"], 10, 5, 7)
    for each in embedded:
        events += session_chrome.embedded(each, piece=piece)
    return session_chrome.trace(events)


TIMELINES = {"x.pftrace": perfetto, "x.chrome_trace": chrome}


def rows(profile: Profile) -> dict[str, float]:
    return values_by_path(profile, "time (ns)")


@pytest.mark.parametrize("name", TIMELINES)
@pytest.mark.parametrize("piece", [1 << 20, 1000])
def test_a_timeline_is_read_as_the_profile_that_its_session_left(name: str, piece: int) -> None:
    profile = decode_profile(TIMELINES[name](PROFILE, piece=piece), name)

    assert rows(profile) == rows(WHOLE)
    assert profile.provenance.to_plain() == WHOLE.provenance.to_plain()


@pytest.mark.parametrize("name", TIMELINES)
def test_slices_make_the_profile_where_a_session_left_none(name: str) -> None:
    profile = decode_profile(TIMELINES[name](), name)

    assert list(rows(profile)) == ["step/k"]


@pytest.mark.parametrize("name", TIMELINES)
def test_half_a_profile_is_none(name: str) -> None:
    whole = TIMELINES[name](PROFILE, piece=len(PROFILE) // 2 + 1)
    torn = whole.replace(b'"rest":0', b'"rest":1').replace(b'"rest": 0', b'"rest": 1')
    if name == "x.pftrace":
        session = SessionTrace()
        session.slice(session.stream(), 10, 20, ["step", "k"], "kernel")
        session.embed(PROFILE, piece=len(PROFILE) // 2 + 1)
        session.packets.pop()
        torn = session.finish()

    assert list(rows(decode_profile(torn, name))) == ["step/k"]


def test_slices_make_the_profile_where_one_of_two_sessions_left_none() -> None:
    both = perfetto(PROFILE, rank=0) + perfetto(rank=1)

    assert list(rows(decode_profile(both, "x.pftrace"))) == ["step/k"]


def test_the_profiles_of_several_sessions_become_one() -> None:
    both = perfetto(PROFILE, rank=0) + perfetto(PROFILE, rank=1)

    found = rows(decode_profile(both, "x.pftrace"))

    assert set(found) == set(rows(WHOLE))
    assert sum(found.values()) == 2 * sum(rows(WHOLE).values())


@pytest.mark.parametrize("name", TIMELINES)
def test_a_damaged_profile_is_an_error(name: str) -> None:
    damaged = PROFILE[:200] + bytes([PROFILE[200] ^ 0xFF]) + PROFILE[201:300]

    with pytest.raises(ProfileFormatError):
        decode_profile(TIMELINES[name](damaged), name)


def test_text_that_is_no_base64_is_an_error() -> None:
    content = chrome(PROFILE).replace(b'"profile": "', b'"profile": "*')

    with pytest.raises(ProfileFormatError):
        decode_profile(content, "x.chrome_trace")
