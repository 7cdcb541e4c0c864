"""Commands, options, hooks, variables, rooms and names of the API stand in the documents."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from architecture.source_tree import texts

import proton_bench
from proton_bench.cli.app import COMMANDS, build_app
from proton_bench.cli.router import ROOT_OPTIONS
from proton_bench.diagnosis.variables import VARIABLES
from proton_bench.plugin import hookspecs

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
# By what the table of contents calls them: folder and name.
DOCS = {
    path.relative_to(ROOT / "docs").with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md")
}
# A name that code looks up: in quotes, or given to a shell or to CMake.
VARIABLE = re.compile(r"\bPROTON_BENCH_[A-Z_]*[A-Z]\b")
# Names of the build and of headers, which no environment holds.
NOT_VARIABLES = re.compile(
    r"PROTON_BENCH_(BUILD_MODULE|BUILD_TESTS|COVERAGE|PUBLIC_FRAMES|RAW_FRAMES|SANITIZE|VERSION"
    r"|RECORD_SINK_\w+)"
)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command_stands_in_readme(command: str) -> None:
    assert f"`proton {command}" in README


def test_short_options_of_run_stand_in_readme() -> None:
    command = typer.main.get_command(build_app(["run"])).commands["run"]
    options = {name for option in command.params for name in option.opts if len(name) == 2}

    assert {"-n", "-o", "-b", "-c", "-m", "-d", "-k"} <= options
    assert [name for name in sorted(options) if f"| `{name} " not in README] == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command_and_its_options_stand_in_the_docs(command: str) -> None:
    (section,) = re.findall(
        rf"^## proton {command}$(.*?)(?=^## |\Z)",
        DOCS["reference/commands"],
        re.MULTILINE | re.DOTALL,
    )
    built = typer.main.get_command(build_app([command])).commands[command]
    commands = [built, *getattr(built, "commands", {}).values()]
    spelled = [
        name
        for each in commands
        for option in each.params
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("-")
    ]

    assert [name for name in spelled if not re.search(rf"`{name}\b", section)] == []


def test_root_options_and_exit_codes_stand_in_the_docs() -> None:
    documented = set(re.findall(r"^\| (\d+) \|", DOCS["reference/commands"], re.MULTILINE))

    assert [name for name in ROOT_OPTIONS if name not in {"-h", "--help"}] == [
        name for name in ROOT_OPTIONS if f"`{name}`" in DOCS["reference/commands"]
    ]
    assert {str(code) for code in exit_codes()} <= documented


def exit_codes() -> set[int]:
    """Return the exit codes of all errors."""
    errors = vars(proton_bench.errors).values()
    return {each.exit_code for each in errors if hasattr(each, "exit_code")}


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_environment_variable_stands_in_the_docs(variable: Any) -> None:
    row = f"| `{variable.name}` | {variable.reader} | {variable.meaning} |"

    assert row in DOCS["reference/environment"]


def test_every_variable_of_ours_that_is_read_is_documented() -> None:
    known = {variable.name for variable in VARIABLES}
    read = {
        name
        for path, text in texts()
        if not path.startswith(("tests/", "docs/"))
        for name in VARIABLE.findall(text)
        if not NOT_VARIABLES.fullmatch(name)
    }

    assert "PROTON_BENCH_DISABLE" in read
    assert sorted(read - known) == []


def test_functions_and_classes_of_the_api_stand_in_the_docs() -> None:
    public = [
        name
        for name in proton_bench.__all__
        if inspect.isclass(getattr(proton_bench, name)) or callable(getattr(proton_bench, name))
    ]

    assert "start" in public
    assert [name for name in public if not re.search(rf"[:.]{name}\n", DOCS["reference/api"])] == []


def test_every_page_stands_in_the_index() -> None:
    listed = set(DOCS["index"].split("```{toctree}")[1].split("```")[0].split()[2:])

    assert listed == DOCS.keys() - {"index"}


def test_rooms_stand_in_architecture() -> None:
    rooms = {path.parent.name for path in (ROOT / "proton_bench").glob("*/__init__.py")}
    native = {path.name for path in (ROOT / "native" / "src").iterdir() if path.is_dir()}

    assert rooms
    assert native
    assert [room for room in sorted(rooms | native) if f"`{room}`" not in ARCHITECTURE] == []


def hooks() -> dict[str, str]:
    """Return the docstring of each hook specification by name."""
    return {
        name: inspect.getdoc(hook) or ""
        for name, hook in inspect.getmembers(hookspecs, inspect.isfunction)
        if name.startswith("proton_")
    }


def test_there_are_at_most_eleven_hooks() -> None:
    # Ten, and modes of the instrumentation backend: a mode is no backend of its own, because it
    # shares the compiler and the buffers of that one.
    assert 0 < len(hooks()) <= 11


@pytest.mark.parametrize("hook", sorted(hooks()))
def test_hook_has_an_example_and_stands_in_the_docs(hook: str) -> None:
    assert "Example::" in hooks()[hook]
    assert f"`{hook}`" in DOCS["how-to/plugins"]
    assert f".. autofunction:: proton_bench.plugin.hookspecs.{hook}\n" in DOCS["reference/hooks"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    targets = LINK.findall(document.read_text(encoding="utf-8"))

    assert [target for target in targets if not (document.parent / target).exists()] == []
