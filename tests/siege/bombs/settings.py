"""Policies, manifests and counters that say nothing at great length."""

from __future__ import annotations

from siege.bombs.kinds import kind_of, nested

kind = kind_of("settings")
GATE = ("gate", "a.hatchet", "b.hatchet")
POLICY = (*GATE, "--policy", "policy.toml")
COUNTERS = ("view", "a.hatchet", "--counters", "counters.csv")
RESUME = ("ab", "--resume", "kept")
LIST = ("baseline", "list", "--store", "store")
CHECK = ("baseline", "check", "--store", "store")


def runs(**more: bytes | str) -> dict[str, bytes]:
    """Return two runs and other files, in whose names ``_`` is a point and ``__`` a slash."""
    files = {"a.hatchet": nested(3), "b.hatchet": nested(3)}
    for name, content in more.items():
        path = name.replace("__", "/").replace("_", ".")
        files[path] = content.encode() if isinstance(content, str) else content
    return files


@kind("", POLICY, ("ab", "--policy", "policy.toml", "--", "missing.py"), is_quick=True)
def keys_of_a_hundred_thousand_parts() -> dict[str, bytes]:
    return runs(policy_toml="a." * 100_000 + "a = 1")


@kind("", POLICY)
def tables_of_a_hundred_thousand_parts() -> dict[str, bytes]:
    return runs(policy_toml="".join(f"[{'a.' * 2000}b{n}]\n" for n in range(1000)))


@kind("", POLICY)
def tables_by_the_thousand() -> dict[str, bytes]:
    return runs(
        policy_toml="".join(f"[[tool.proton.gate{n % 9}]]\na{n} = 1\n" for n in range(150_000))
    )


@kind("", POLICY)
def inline_tables_in_tables() -> dict[str, bytes]:
    return runs(policy_toml="share = " + "{a = " * 30_000)


@kind("", POLICY)
def lists_in_a_policy() -> dict[str, bytes]:
    return runs(policy_toml="quarantine = [" + '"a", ' * 1_500_000 + "]")


@kind("", POLICY, is_quick=True)
def numbers_in_a_policy() -> dict[str, bytes]:
    return runs(policy_toml="share = " + "1" * 5_000_000)


@kind("", POLICY)
def fractions_in_a_policy() -> dict[str, bytes]:
    return runs(policy_toml="share = 0." + "1" * 5_000_000 + "e9999")


@kind("", POLICY)
def text_in_a_policy() -> dict[str, bytes]:
    return runs(policy_toml='thresholds = ["""' + "\\u0041" * 1_500_000 + '"""]')


@kind("", POLICY)
def threshold_of_a_policy_without_end() -> dict[str, bytes]:
    return runs(policy_toml='thresholds = ["median:' + "1%&" * 1_500_000 + '1%"]')


@kind(
    "", (*GATE, "--policy", "a.toml"), (*GATE, "--policy", "b.toml"), (*GATE, "--policy", "c.toml")
)
def values_that_are_none() -> dict[str, bytes]:
    return runs(
        a_toml="share = nan\n" + "# x\n" * 500_000,
        b_toml="".join(f"share = 0.1{n}\n" for n in range(200_000)),
        c_toml='same-binary = "' + "x" * 2_000_000 + '"',
    )


def manifest(text: str = "[]", experiment: str = "{}") -> str:
    head = '"schema": "proton_bench.experiment", "version": [1, 0]'
    return f'{{{head}, "runs": {text}, "experiment": {experiment}}}'


@kind("", RESUME, ("ab", "--resume", "kept", "--json", "o.json"))
def manifest_of_many_runs() -> dict[str, bytes]:
    slot = '"side": "base", "stage": "first", "number": 0, "position": 0'
    one = f'{{{slot}, "slot": {{{slot}}}, "files": ["a.proton"], "seconds": 1}}'
    return runs(kept__manifest_json=manifest(f"[{', '.join([one] * 50_000)}]"))


@kind("", RESUME)
def manifest_of_lists() -> dict[str, bytes]:
    return runs(kept__manifest_json=manifest(experiment='{"a": ' + "[" * 9_000_000))


@kind("", RESUME)
def manifest_of_empty_lists() -> dict[str, bytes]:
    return runs(kept__manifest_json=manifest(experiment='{"a": [' + "[]," * 2_500_000 + "[]]}"))


@kind("", LIST, CHECK)
def store_of_lists() -> dict[str, bytes]:
    entry = '{"schema": "proton_bench.baseline", "version": [1, 0], "runs": [' + "{}," * 2_500_000
    return {"store/entries/20260101T000000-0123abcd/entry.json": (entry + "{}]}").encode()}


@kind("", ("view", "a.hatchet", "--list"), GATE, ("baseline", "list"))
def settings_of_a_project() -> dict[str, bytes]:
    return runs(pyproject_toml="[tool.proton.gate]\n" + "a." * 60_000 + "a = 1\n")


@kind("", COUNTERS)
def counters_of_one_line() -> dict[str, bytes]:
    return runs(counters_csv='"ID","Kernel Name","m"\n' + '"a' * 3_000_000)


@kind("", COUNTERS)
def counters_of_one_cell() -> dict[str, bytes]:
    return runs(counters_csv='"ID","Kernel Name","m"\n0,"k","' + "1," * 4_000_000 + '"')


@kind("", COUNTERS)
def counters_of_many_headings() -> dict[str, bytes]:
    return runs(counters_csv='"ID","Kernel Name","m"\n' * 300_000)


@kind("", COUNTERS)
def counters_of_many_kernels() -> dict[str, bytes]:
    rows = "".join(f'{n},"kernel_{n}<int, {n}>",{n}\n' for n in range(150_000))
    return runs(counters_csv='"ID","Kernel Name","m"\n' + rows)
