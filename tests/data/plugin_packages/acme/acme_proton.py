"""A backend as a third party would write it: a simulated accelerator with one kernel."""

from __future__ import annotations

import os

from proton_bench.plugin import Availability, Backend, Mode, ModeSpec, hookimpl

KERNEL = "acme_kernel"
KERNEL_NS = 1000


class AcmeCollector:
    """Turns calls of ``launch`` into records while it is on."""

    active: AcmeCollector | None = None

    def __init__(self, mode: Mode) -> None:
        self.mode = mode

    def start(self) -> None:
        AcmeCollector.active = self

    def flush(self) -> None:
        from proton_bench import _native

        _native.drain()

    def stop(self) -> None:
        AcmeCollector.active = None


def launch() -> None:
    """Pretend to run the kernel for ``KERNEL_NS`` nanoseconds."""
    if AcmeCollector.active is None:
        return
    from proton_bench import _native

    correlation_id = _native.emit_launch()
    _native.set_device("CUDA", 7, {"arch": "90"})
    _native.emit_kernel(correlation_id, KERNEL, 0, KERNEL_NS, "CUDA", 7, 0)


def availability() -> Availability:
    if os.environ.get("ACME_MISSING"):
        return Availability(available=False, reason="no ACME driver was found: install it")
    return Availability(available=True, reason="ACME driver 4.2")


def prepare() -> str | None:
    return "the ACME accelerator is pretended" if os.environ.get("ACME_NOTICE") else None


BACKEND = Backend(
    name="acme",
    summary="kernels of ACME accelerators",
    availability=availability,
    open=AcmeCollector,
    modes=(ModeSpec("slow", {"factor": "how much slower"}, "everything takes longer"),),
    device_kinds=("CUDA",),
    prepare=prepare,
)


@hookimpl
def proton_backends() -> list[Backend]:
    return [BACKEND]


@hookimpl
def proton_commands(app) -> None:  # noqa: ANN001
    @app.command("acme-hello")
    def hello(name: str) -> None:
        """Greet."""
        print(f"hello {name}")

    @app.command("acme-odd")
    def odd(value: int | str) -> None:
        """Have a parameter that no command line can give."""

    @app.command("view")
    def view() -> None:
        """Try to take over a built-in command."""


@hookimpl
def proton_session_finished(session, paths) -> None:  # noqa: ANN001
    if os.environ.get("ACME_LOG"):
        with open(os.environ["ACME_LOG"], "a", encoding="utf-8") as log:
            log.write(f"{session.id} {len(paths)}\n")
