"""Runs torch operators under the cpu backend; what they should become is in test_cpu_operators.py.

``python operator_program.py FOLDER [MODE]`` writes FOLDER/operators.proton.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import proton_bench as proton


def record(folder: Path, mode: str | None) -> None:
    """Record everything below in one session."""
    session = proton.start(str(folder / "operators"), backend="cpu", mode=mode)
    with proton.scope("before torch"):
        import torch

        torch.ones(2)
    train(torch)
    ranges(torch)
    threads(torch)
    with proton.scope("closed"):
        pass
    torch.zeros(2)
    proton.finalize(session)


def train(torch: object) -> None:
    """Two steps, of which the first makes what later ones find."""
    layer = torch.nn.Linear(4, 3)
    for step in range(2):
        with proton.scope(f"step {step}"):
            with proton.scope("forward"):
                loss = layer(torch.ones(2, 4)).softmax(1).square().sum()
            with proton.scope("backward"):
                loss.backward()


def ranges(torch: object) -> None:
    """Ranges that the program names: one that is left in order, two that another thread ends."""
    record_function = torch.autograd.profiler.record_function
    with proton.scope("ranges"):
        with record_function("named"):
            torch.ones(2)
        begin = torch.ops.profiler._record_function_enter_new
        end = torch.ops.profiler._record_function_exit._RecordFunction
        handle = begin("handed over")
        torch.ones(2)
        other = threading.Thread(target=end, args=(handle,))
        other.start()
        other.join()
        torch.zeros(2)
    handles = []
    first = threading.Thread(target=lambda: handles.append(begin("ends after its thread")))
    first.start()
    first.join()
    end(handles.pop())


def threads(torch: object) -> None:
    """Operators of several threads at once, each in a scope of its own."""

    def work(number: int) -> None:
        with proton.scope(f"thread {number}"):
            for _ in range(50):
                torch.ones(2)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    record(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
