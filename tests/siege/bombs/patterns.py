"""Expressions, selectors and other words of users, on names that were made for them."""

from __future__ import annotations

from collections.abc import Sequence

from siege.bombs.deep import line
from siege.bombs.kinds import grown, kind_of, nested
from siege.bombs.names import named
from siege.bombs.wide import columns_that_just_fit

kind = kind_of("patterns")
GATE = ("gate", "a.hatchet", "b.hatchet")
DEEP = ("gate", "a.proton", "b.proton")


def pair() -> dict[str, bytes]:
    """Return two runs of a kernel with a long name."""
    return {"a.hatchet": nested(3, "a" * 5000), "b.hatchet": nested(3, "a" * 5000)}


def deep_pair() -> dict[str, bytes]:
    content = grown(line(3000))
    return {"a.proton": content, "b.proton": content}


def including(*expressions: str) -> list[Sequence[str]]:
    return [("view", "a.hatchet", "-i", each) for each in expressions]


@kind(
    "",
    *including("(a+)+$", "(a|a)*b", "(a*)*b", "(.*.*.*.*)=", "(?:a?){30}a{4990}b"),
    is_quick=True,
)
def repetitions_in_repetitions() -> dict[str, bytes]:
    return pair()


@kind("", *including("((a{0,999}){0,999}){0,999}b", "(?:" * 90 + "a" + "){1,2}" * 90))
def counts_in_counts() -> dict[str, bytes]:
    return pair()


@kind("", *including("(" * 40_000, "(?:" * 3000 + "a" + ")" * 3000, "[" * 40_000, "\\" * 40_001))
def brackets_in_brackets() -> dict[str, bytes]:
    return pair()


@kind("", *including("|".join(f"a{n}" for n in range(18_000)), "a?" * 30_000 + "b"))
def alternatives_by_the_thousand() -> dict[str, bytes]:
    return pair()


@kind("", *including("(?=(a+))(?=\\1\\1*b)\\1*b", "(a+)\\1+b", "(?i:a*)*B", "(?<=a)(a*)*(?=b)"))
def expressions_that_look_back() -> dict[str, bytes]:
    return pair()


@kind(
    "",
    ("view", "a.hatchet", "-e", "(a+)+$"),
    ("report", "a.hatchet", "-o", "o.html", "-m", "(a+)+$"),
    ("diff", "a.hatchet", "b.hatchet", "-m", "*" * 9000),
    ("merge", "a.hatchet", "b.hatchet", "--stragglers", "-m", "(" * 9000),
)
def expressions_in_other_options() -> dict[str, bytes]:
    return pair()


@kind(
    "",
    ("query", "a.hatchet", "--hatchet", 'MATCH (".", p) WHERE p."name" =~ "(a+)+b"'),
    ("query", "a.hatchet", "--hatchet", 'MATCH ("*")->("*")->("*")->("*", p) WHERE p."name" = "b"'),
    ("query", "a.hatchet", "--hatchet", "MATCH (" + "(" * 30_000),
)
def paths_in_a_query() -> dict[str, bytes]:
    return pair()


@kind("", (*GATE, "-t", "{a,b}" * 4000 + "@median:5%"), (*GATE, "-t", "[a-z]" * 4000 + "@p95:5%"))
def braces_in_a_selector() -> dict[str, bytes]:
    return pair()


@kind("", (*GATE, "-t", "a*" * 9000 + "@median:5%"), (*GATE, "-t", "?*" * 9000 + "b@median:5%"))
def stars_in_a_selector() -> dict[str, bytes]:
    return pair()


@kind("", (*DEEP, "-t", "**/k/" * 2000 + "k@median:5%"), (*DEEP, "-t", "**/" * 9000 + "@p95:5%"))
def any_names_in_a_selector() -> dict[str, bytes]:
    return deep_pair()


@kind("", (*DEEP, "-t", "**/*k*/**@median:5%"), ("gate", "a.proton", "b.proton", "--all"))
def any_names_in_a_deep_tree() -> dict[str, bytes]:
    content = grown(line(20_000))
    return {"a.proton": content, "b.proton": content}


QUARANTINE = ", ".join(f'"**/*{n}*/**"' for n in range(900))


@kind("", (*DEEP, "--set", f"quarantine=[{QUARANTINE}]"))
def globs_of_what_may_fail() -> dict[str, bytes]:
    return deep_pair()


@kind("", (*GATE, "--policy", "policy.toml"), is_quick=True)
def globs_of_a_policy() -> dict[str, bytes]:
    globs = ", ".join(f'"**/*a*{number}*a*/**"' for number in range(60_000))
    return pair() | {"policy.toml": f"quarantine = [{globs}]".encode()}


@kind("", (*GATE, "--policy", "policy.toml"))
def thresholds_of_a_policy() -> dict[str, bytes]:
    many = ", ".join(f'"*a*{number}/**@p95:5%"' for number in range(60_000))
    return pair() | {"policy.toml": f"thresholds = [{many}]".encode()}


@kind(
    "",
    ("view", "a.proton", "-m", "m" * 9000),
    ("view", "a.proton", "-m", "m1x"),
    ("view", "a.proton", "-m", ",".join(f"m{n}" for n in range(9000))),
    ("diff", "a.proton", "a.proton", "-m", "m1x"),
    ("view", "a.proton", "--sort", "avg_" * 9000 + "/ms"),
)
def metrics_that_are_not_there() -> dict[str, bytes]:
    return {"a.proton": columns_that_just_fit()}


@kind(
    "", ("view", "a.hatchet", "--source-file", "*a" * 9000), ("view", "a.hatchet", "-d", "9" * 4000)
)
def words_beside_the_point() -> dict[str, bytes]:
    return pair()


@kind("", ("view", "a.hatchet", "-i", "(x+x+)+y"), ("view", "a.hatchet", "-i", "(.*a){25}"))
def expressions_on_many_names() -> dict[str, bytes]:
    return {"a.hatchet": named("xa" * 40 + str(number) for number in range(20_000))}
