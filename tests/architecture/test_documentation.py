"""Every command, run option, hook and room stands in the documents, and links lead somewhere."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import typer

from proton_bench.cli.app import COMMANDS, build_app
from proton_bench.plugin import hookspecs

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PLUGINS = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command_stands_in_readme(command: str) -> None:
    assert f"`proton {command}" in README


def test_short_options_of_run_stand_in_readme() -> None:
    command = typer.main.get_command(build_app(["run"])).commands["run"]
    options = {name for option in command.params for name in option.opts if len(name) == 2}

    assert {"-n", "-o", "-b", "-c", "-m", "-d", "-k"} <= options
    assert [name for name in sorted(options) if f"| `{name} " not in README] == []


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


def test_there_are_at_most_ten_hooks() -> None:
    assert 0 < len(hooks()) <= 10


@pytest.mark.parametrize("hook", sorted(hooks()))
def test_hook_has_an_example_and_stands_in_the_docs(hook: str) -> None:
    assert "Example::" in hooks()[hook]
    assert f"`{hook}`" in PLUGINS


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    targets = LINK.findall(document.read_text(encoding="utf-8"))

    assert [target for target in targets if not (document.parent / target).exists()] == []
