"""The recipes of docs/how-to/frameworks.md work with the packages that are installed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

pytest.importorskip("proton_bench._native")

pytestmark = pytest.mark.long
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "frameworks.md"
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"(?:`([\w.]+)`:\n\n)?```(?:\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTIONS = dict(SECTION.findall(PAGE.read_text(encoding="utf-8")))
STARTERS = {"python": [sys.executable], "proton": [sys.executable, "-m", "proton_bench"]}
# A server's worker that runs two windows, with the calls of vLLM's worker in their order.
SERVER = """
import importlib
import inspect
import multiprocessing
import os
import sys


def work():
    import torch

    upstream = importlib.import_module("triton.profiler")
    assert "output_format" in inspect.signature(upstream.finalize).parameters
    one = torch.ones(4, 4)
    one @ one
    for window in range(2):
        folder = f"windows/{window}"
        os.makedirs(folder, exist_ok=True)
        session = upstream.start(
            name=f"{folder}/run{window}",
            context="shadow",
            data="tree",
            backend="cpu",
            mode=None,
            hook="triton",
        )
        assert session is not None
        with upstream.scope("batch", metrics={"tokens": 4}):
            one @ one
        upstream.deactivate(session=session)
        one @ one
        if window == 0:
            upstream.finalize(session=session)
        else:
            upstream.finalize(session=session, output_format="hatchet")


if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    worker.start()
    worker.join()
    sys.exit(worker.exitcode)
"""
# The interpreter reads the file that the wheel installs, as it does in site-packages.
SITE = f"import site; site.addsitedir({str(PAGE.parents[2] / 'native')!r})"
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import torch")
for cell in sys.argv[1:]:
    assert shell.run_cell(cell).success
shell.run_cell("import proton_bench; print('rows:', *proton_bench.last().strings, sep='\\\\n')")
"""


def run(folder: Path, *words: str) -> str:
    """Run a command, which has to succeed, and return its stdout."""
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def follow(title: str, folder: Path) -> list[str]:
    """Write the programs of a recipe, run its commands, and return what each of them printed."""
    said = []
    for name, text in BLOCK.findall(SECTIONS[title]):
        if name:
            (folder / name).write_text(text, encoding="utf-8")
        elif text.startswith(("python ", "proton ")):
            for line in text.splitlines():
                command, *words = shlex.split(line, comments=True)
                said.append(run(folder, *STARTERS[command], *words))
    return said


def calls(profile: Profile, name: str) -> int:
    """Return how often the rows of a name were called."""
    column = profile.columns["count"]
    rows = [row for row in range(len(profile)) if profile.name(row) == name]
    return sum(int(column.values[row]) for row in rows if column.valid[row])


@pytest.mark.parametrize(
    ("title", "modules", "shown"),
    [
        (
            "Trainer of transformers",
            ["torch", "transformers", "accelerate"],
            ["(GPT2Block) x4", ".mlp (GPT2MLP)", "Optimizer.step#AdamW.step"],
        ),
        (
            "PyTorch Lightning",
            ["torch", "lightning"],
            ["Optimizer.step#AdamW.step", "Sequential", "<backward>", "enumerate(DataLoader)"],
        ),
        ("JAX and CuPy", ["jax"], ["compile", "step", "wait"]),
    ],
    ids=["transformers", "lightning", "jax"],
)
def test_the_first_screen_shows(
    title: str, modules: list[str], shown: list[str], tmp_path: Path
) -> None:
    for module in modules:
        pytest.importorskip(module)

    *_, screen = follow(title, tmp_path)

    assert [name for name in shown if name not in screen] == []


@pytest.mark.parametrize("start", ["spawn", "fork"])
@pytest.mark.parametrize("is_run", [False, True], ids=["server alone", "proton run"])
def test_windows_of_a_server_are_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, is_run: bool
) -> None:
    for module in ("torch", "triton"):
        pytest.importorskip(module)
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    if is_run:
        run(tmp_path, *STARTERS["proton"], "-n", "serve", "server.py", start)
    else:
        (tmp_path / "sitecustomize.py").write_text(SITE)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("PROTON_BENCH_COMPAT", "1")
        run(tmp_path, sys.executable, "server.py", start)

    for window in range(2):
        profile = read_profile(tmp_path / f"windows/{window}/run{window}.hatchet")
        assert calls(profile, "aten::mm") == 1
        assert ("batch", "aten::matmul") in {profile.path(row)[:2] for row in range(len(profile))}
    if is_run and start == "spawn":  # the worker is recorded as a whole
        (file,) = tmp_path.glob("serve.pid*.proton")
        assert calls(read_profile(file), "aten::mm") == 5


def test_a_cell_and_a_block_are_recorded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("IPython")

    (printed,) = follow("Notebooks", tmp_path)
    cells = [text for _, text in BLOCK.findall(SECTIONS["Notebooks"]) if text.startswith("%")]
    said = run(tmp_path, sys.executable, "-c", CELLS, *cells)

    assert "aten::" in printed  # which operators took longest depends on the machine
    assert len(cells) == 2
    assert {"Linear", "aten::addmm"} <= set(said.partition("rows:\n")[2].splitlines())
