"""The documents name commands, options, hooks, variables, rooms and names of the API."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import typer
from architecture.source_tree import texts
from rich.text import Text

import proton_bench
from docs.pictures import picture
from proton_bench.analysis.why.findings import FINDINGS
from proton_bench.analysis.why.verdict import KINDS
from proton_bench.cli.app import COMMANDS, ROOT_OPTIONS, build_app
from proton_bench.formats.registry import read_steps
from proton_bench.plugin import hookspecs
from proton_bench.report.text.summary import summary_lines

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
# Folder and name by the title in the table of contents.
DOCS = {
    path.relative_to(ROOT / "docs").with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md")
}
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
FOLDERS = ("tutorials", "how-to", "reference", "explanation")
MOST_PAGES = 19
MOST_VARIABLES = 30
# Documents that say where things lie.
MAPS = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
# A path of the tree, unless it holds a <name>.
PATH = re.compile(
    r"(?<![\w/<>.$-])((?:proton_bench|plugins|native|tests|docs|benchmarks|examples)/[\w./-]*\w)"
    r"(?![\w<]|/<)"
)
# Files of the examples in CONTRIBUTING.md, and placeholders for files of a user.
EXAMPLES = {
    "benchmarks/micro/hot_paths.py",  # replaced, and measured once
    "examples/NAME.py",
    "tests/bench",
    "tests/perf",
    "native/src/collector/acme",
    "proton_bench/include/proton_bench/record_sink.h",  # of an installed package
    "plugins/proton_bench_plugins/acme/__init__.py",
    "proton_bench/cli/commands/deepest.py",
    "proton_bench/formats/export/lines_file.py",
    "proton_bench/report/text/deepest.py",
    "tests/unit/cli/commands/test_deepest.py",
    "tests/unit/formats/export/test_lines_file.py",
    "tests/unit/report/text/test_deepest.py",
}
# A name that code looks up: in quotes, or given to a shell or to CMake.
VARIABLE = re.compile(r"\bPROTON_BENCH_[A-Z_]*[A-Z]\b")
# Names of the build and of headers, which no environment holds.
NOT_VARIABLES = re.compile(
    r"PROTON_BENCH_(BUILD_MODULE|BUILD_TESTS|COVERAGE|PUBLIC_FRAMES|RAW_FRAMES|SANITIZE|VERSION"
    r"|RECORD_SINK_\w+)"
)


def test_readme_is_short_and_begins_with_a_picture() -> None:
    lines = README.splitlines()

    assert len(lines) <= 120
    assert "](docs/pictures/view.svg)" in "\n".join(lines[:15])


@pytest.mark.parametrize("name", picture.PICTURES)
def test_the_picture_shows_what_the_command_shows(name: str) -> None:
    drawn = picture.text_of((picture.FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
    shown = Text.from_ansi(picture.screen(picture.PICTURES[name])).plain

    assert "".join(shown.split()) in drawn


@pytest.mark.parametrize(
    ("page", "name"),
    [("README.md", "train.proton"), ("docs/tutorials/first_profile.md", "network.proton")],
)
def test_the_page_quotes_what_the_run_of_its_picture_printed(page: str, name: str) -> None:
    (profile,) = read_steps([picture.FOLDER / name])
    printed = summary_lines(profile, name, 110)

    assert "\n".join(printed) in (ROOT / page).read_text(encoding="utf-8")


def test_tutorials_are_short_and_have_a_picture() -> None:
    for page in ("first_profile", "why_is_it_slow"):
        text = DOCS[f"tutorials/{page}"]
        assert f"](../pictures/{page}.svg)" in text
        assert len(text.split()) <= 600


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


def test_verdicts_and_findings_stand_in_the_docs() -> None:
    page = DOCS["how-to/why"]
    named = [*KINDS, *(rule.id for rule in FINDINGS)]

    assert [name for name in named if f"`{name}`" not in page] == []


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


def test_variables_of_ours_stand_in_the_docs_where_code_reads_them() -> None:
    page = re.findall(r"^\| `(\w+)` \|", DOCS["reference/environment"], re.MULTILINE)
    read = {
        name
        for path, text in texts()
        if path.startswith(("proton_bench/", "plugins/", "native/src/"))
        for name in VARIABLE.findall(text)
        if not NOT_VARIABLES.fullmatch(name)
    }

    assert len(page) == len(set(page)) <= MOST_VARIABLES
    assert sorted(read) == sorted(name for name in page if name.startswith("PROTON_BENCH_"))


def test_functions_and_classes_of_the_api_stand_in_the_docs() -> None:
    public = [
        name
        for name in proton_bench.__all__
        if inspect.isclass(getattr(proton_bench, name)) or callable(getattr(proton_bench, name))
    ]

    assert "start" in public
    assert [name for name in public if not re.search(rf"[:.]{name}\n", DOCS["reference/api"])] == []


def test_every_page_stands_in_the_index_once_under_its_kind() -> None:
    tables = re.findall(r"```{toctree}\n:caption: (.*)\n:.*\n\n((?:.+\n)+)```", DOCS["index"])
    kinds = {caption: entries.split() for caption, entries in tables}

    assert list(kinds) == ["Tutorials", "How-to guides", "Reference", "Explanation"]
    for folder, entries in zip(FOLDERS, kinds.values(), strict=True):
        assert sorted(entries) == sorted(page for page in DOCS if page.startswith(f"{folder}/"))


def test_pages_lie_in_four_small_folders() -> None:
    folders = Counter(page.rpartition("/")[0] for page in DOCS if page != "index")

    assert folders.keys() == set(FOLDERS)
    assert max(folders.values()) <= MOST_PAGES, folders


def test_architecture_is_short() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 150


def test_rooms_stand_in_architecture_in_their_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        each["layers"]
        for each in contracts["tool"]["importlinter"]["contracts"]
        if "layers" in each
    )
    # Modules of support stand in several layers, the uppermost of which counts.
    order = dict.fromkeys(
        tuple(dict.fromkeys(name.split(".")[1] for name in layer.split(" | ")))
        for layer in layers[1:]
    )
    table = ARCHITECTURE.split("| room | what it is | heavy imports |\n|---|---|---|\n")[1]
    rows = [row.split(" | ")[0] for row in table.split("\n\n")[0].splitlines()]

    assert [tuple(re.findall(r"`(\w+)`", row)) for row in rows] == list(order)
    rooms = {path.parent.name for path in (ROOT / "proton_bench").glob("*/__init__.py")}
    assert rooms <= {name for layer in order for name in layer}


def test_native_rooms_stand_in_architecture_in_their_order() -> None:
    heads = (ROOT / "native" / "src" / "rooms.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `(\w+)` \|", heads, re.MULTILINE)
    (order,) = re.findall(r"^`support` <[^.]*?`$", ARCHITECTURE, re.MULTILINE)

    assert re.findall(r"`(\w+)`", order) == rooms
    assert set(rooms) == {path.name for path in (ROOT / "native/src").iterdir() if path.is_dir()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_that_is_named_exists(document: Path) -> None:
    # The changelog names things of the past.
    named = [] if document.name == "CHANGELOG.md" else PATH.findall(document.read_text("utf-8"))

    assert named or document not in MAPS
    assert [path for path in named if not (ROOT / path).exists() and path not in EXAMPLES] == []


def test_the_way_of_one_kernel_is_a_way_through_files() -> None:
    way = ARCHITECTURE.split("| step | file | in → out |")[1].split("\n\n")[0]

    assert len(PATH.findall(way)) == len(way.splitlines()) - 2
    assert all((ROOT / path).is_file() for path in PATH.findall(way))


def test_notes_of_changes_have_a_kind() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    kinds = "|".join(settings["tool"]["towncrier"]["fragment"])
    notes = [path for path in (ROOT / "changes").iterdir() if path.name != ".gitignore"]

    assert [
        path.name
        for path in notes
        if not re.fullmatch(rf"(\+[a-z0-9-]+|\d+)\.({kinds})\.md", path.name)
        or not path.read_text(encoding="utf-8").strip()
    ] == []
    assert f"\n{settings['tool']['towncrier']['start_string'].strip()}\n" in CHANGELOG


def hooks() -> dict[str, str]:
    """Return the docstring of each hook specification by name."""
    return {
        name: inspect.getdoc(hook) or ""
        for name, hook in inspect.getmembers(hookspecs, inspect.isfunction)
        if name.startswith("proton_")
    }


def test_there_are_at_most_eleven_hooks() -> None:
    # Ten, and modes of the instrumentation backend: a mode is not a backend, because it
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
