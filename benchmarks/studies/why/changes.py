"""Programs changed as `proton why` says: python -m benchmarks.studies.why.changes --out FOLDER.

GPT-2 of transformers trains and Llama generates, with random weights. Each is recorded once with
counters. Then it runs in turns as it is and as findings suggest, without a recording. Prints for
each change what the finding saves at most per step or token, and what the change saved by the
program's own clock. Needs a GPU and transformers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_MODULE = "benchmarks.studies.why.changes"
# What each finding suggests for these programs.
_CHANGES = {
    "train": {"launches": "graph", "fp32-products": "tf32", "unfused-optimizer": "fused"},
    "generate": {"launches": "graph"},
}
_AS_IT_IS = "none"
_BLOCKS = 10
_UNITS = {"train": 20, "generate": 60}  # steps or tokens of a block
_TOKENS = 300  # of a generated text


def _training(change: str) -> Callable[[], None]:
    import torch
    import transformers

    torch.backends.cuda.matmul.allow_tf32 = change == "tf32"
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).cuda()
    ids = torch.randint(0, 50_000, (4, 256), device="cuda")
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=1e-4,
        fused=True if change == "fused" else None,
        capturable=change == "graph",
    )

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()

    return _replayed(step) if change == "graph" else step


def _generating(change: str) -> Callable[[], None]:
    import torch
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=12,
        num_attention_heads=16,
        num_key_value_heads=8,
    )
    model = transformers.LlamaForCausalLM(config).cuda().eval().requires_grad_(False)
    cache = transformers.StaticCache(config=model.config, max_cache_len=_TOKENS)
    token = torch.ones((1, 1), dtype=torch.long, device="cuda")
    place = torch.zeros(1, dtype=torch.long, device="cuda")

    def next_token() -> None:
        out = model(
            input_ids=token,
            past_key_values=cache,
            position_ids=place[None],
            cache_position=place,
            use_cache=True,
        )
        token.copy_(out.logits[:, -1:].argmax(-1))
        place.add_(1)

    forward, made = _replayed(next_token) if change == "graph" else next_token, 0

    def one() -> None:
        nonlocal made
        if made % _TOKENS == 0:
            cache.reset()
            place.zero_()
        made += 1
        forward()

    return one


def _replayed(work: Callable[[], None]) -> Callable[[], None]:
    import torch

    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def _run(program: str, change: str) -> None:
    """Run a program, and print the milliseconds of a step or token of each block as JSON."""
    import torch

    unit = {"train": _training, "generate": _generating}[program](change)
    found = []
    for _ in range(_BLOCKS):
        torch.cuda.synchronize()
        begin_s = time.perf_counter()
        for _ in range(_UNITS[program]):
            unit()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - begin_s) * 1e3 / _UNITS[program])
    print(json.dumps(found))


def _timed(program: str, change: str) -> list[float]:
    """Return the milliseconds of blocks of a fresh process, without the first one."""
    command = [sys.executable, "-m", _MODULE, "--run", program, "--change", change]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(block) for block in json.loads(done.stdout.splitlines()[-1])[1:]]


def _at_most_ms(folder: Path, program: str) -> dict[str, float]:
    """Return what each finding saves at most, per step or token of the recorded run."""
    from benchmarks.studies.why.study import record  # not in the recorded process: it loads much

    words = ["--run", program, "--change", _AS_IT_IS]
    record((folder / program).absolute(), "counters", [__file__, *words])
    command = [sys.executable, "-m", "proton_bench", "why", str(folder / f"{program}.proton")]
    print(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    said = subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    findings: list[Mapping[str, Any]] = json.loads(said.stdout)["findings"]
    units = _BLOCKS * _UNITS[program]
    return {finding["id"]: finding["gain_ns"] / 1e6 / units for finding in findings}


def _line(name: str, blocks: Sequence[float], plain: Sequence[float]) -> str:
    figures = [statistics.median(blocks), min(blocks)]
    saved = [statistics.median(plain) - figures[0], min(plain) - figures[1]]
    return f"{name:24}" + "".join(f"{each:10.2f}" for each in (*figures, *saved))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, change and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of the profiles")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", choices=list(_CHANGES), help="run a program, and nothing else")
    parser.add_argument("--change", default=_AS_IT_IS, help="of the program that runs")
    options = parser.parse_args(arguments)
    if options.run:
        _run(options.run, options.change)
        return 0
    if options.out is None:
        parser.error("--out is missing")
    options.out.mkdir(parents=True, exist_ok=True)
    for program, changes in _CHANGES.items():
        at_most = _at_most_ms(options.out, program)
        blocks: dict[str, list[float]] = {name: [] for name in (_AS_IT_IS, *changes.values())}
        for _ in range(options.rounds):
            for name in blocks:
                blocks[name] += _timed(program, name)
        (options.out / f"{program}.json").write_text(json.dumps([at_most, blocks]))
        print("ms per step or token        median     least     saved  by least at most")
        plain = blocks[_AS_IT_IS]
        print(_line(program, plain, plain))
        for finding, name in changes.items():
            bound = f"{at_most[finding]:.2f}" if finding in at_most else "no finding"
            print(_line(f"{program}, {name}", blocks[name], plain), bound)
    return 0


if __name__ == "__main__":
    sys.exit(main())
