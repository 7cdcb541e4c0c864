"""Record real streams of libcupti on a machine with an NVIDIA GPU.

``python tests/fakes/record_streams.py OUTDIR`` builds the recorder with g++, runs every workload
of ``cupti_recorder/workloads.py`` in a process of its own and checks what was recorded. A workload
that fails, crashes or hangs is reported and does not stop the others.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "native" / "src"
LAUNCHES = ("cuLaunchKernel", "cuLaunchCooperativeKernel")
LARGEST = 200_000

sys.path[:0] = [str(HERE), str(HERE / "cupti_recorder")]

import stream_file  # noqa: E402
import workloads  # noqa: E402


def build(folder: Path) -> Path:
    """Compile the recorder into ``folder`` and return its path."""
    library = folder / "libcupti_recorder.so"
    command = ["g++", "-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
    command += [f"-I{SOURCES}", f"-I{HERE}", f"-I{HERE / 'cupti_recorder'}"]
    sources = (HERE / "cupti_recorder").glob("*.cpp")
    command += [*sorted(str(source) for source in sources), "-o", str(library)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return library


def library_of_triton() -> Path:
    """Return libcupti of Triton's wheel."""
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        raise SystemExit("Triton is not installed: name a library with --cupti")
    folder = Path(found.origin).parent / "backends" / "nvidia" / "lib" / "cupti"
    return next(iter(sorted(folder.glob("libcupti.so*"))))


def observed(stream: stream_file.Stream) -> dict[str, int]:
    """Count the stream's contents, by the names that workloads use."""
    calls, records = stream.calls(), stream.records()
    launches = [
        call
        for call in calls
        if call.fields["domain"] == stream_file.DRIVER
        and (call.function or "").startswith(LAUNCHES)
    ]
    counts = {"kernels": 0, "memcpys": 0, "memsets": 0, "graphs": 0}
    names = {10: "kernels", 3: "kernels", 1: "memcpys", 22: "memcpys", 2: "memsets", 51: "graphs"}
    for record in records:
        if record.kind in names:
            counts[names[record.kind]] += 1
    counts.update(stream.kernels())
    counts["launches"] = sum(call.fields["site"] == 0 for call in launches)
    counts["failed_launches"] = sum(call.fields["result"] != 0 for call in launches)
    counts["graph_launches"] = sum(
        call.fields["domain"] == stream_file.DRIVER
        and (call.function or "").startswith("cuGraphLaunch")
        and call.fields["site"] == 0
        for call in calls
    )
    counts["threads"] = len({call.fields["thread"] for call in launches})
    counts["ranges"] = sum(
        call.fields["domain"] == stream_file.NVTX and "Push" in (call.function or "")
        for call in calls
    )
    return counts


def complaints(stream: stream_file.Stream) -> list[str]:
    """Return what a stream lacks of the counts in it and of its workload's."""
    counts = observed(stream)
    found = [f"{key} failed: {value}" for key, value in stream.facts if key == "failed"]
    expected = json.loads(stream.fact("expected") or "{}")
    for key, least in expected.items():
        # Libraries may add kernels and copies of their own; the named ones are exact.
        is_met = counts.get(key, 0) >= least
        if not is_met:
            found.append(f"{key}: {counts.get(key, 0)}, expected {least}")
    sites = [0, 0]
    for call in stream.calls():
        if call.fields["domain"] in {stream_file.DRIVER, stream_file.RUNTIME}:
            sites[call.fields["site"]] += 1
    if sites[0] != sites[1]:
        found.append(f"{sites[0]} calls were entered, {sites[1]} left")
    called = {call.fields["correlation"] for call in stream.calls()}
    lost = [record for record in stream.records() if record.kind == 10]
    orphans = sum(record.u32(92) not in called for record in lost)
    if orphans:
        found.append(f"{orphans} kernels belong to no call")
    if stream.dropped:
        found.append(f"{stream.dropped} records were dropped")
    return found


def record(name: str, recorder: Path, cupti: Path, folder: Path, limit_s: float) -> list[str]:
    """Record one workload and return what is wrong with it."""
    output = folder / f"{name}.cupti"
    output.unlink(missing_ok=True)
    environment = dict(os.environ, NVTX_INJECTION64_PATH=str(cupti), RECORDED_CUPTI=str(cupti))
    worker = str(HERE / "cupti_recorder" / "worker.py")
    command = [sys.executable, worker, name, str(recorder), str(cupti), str(output)]
    try:
        done = subprocess.run(
            command, env=environment, timeout=limit_s, check=False, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return [f"did not end within {limit_s} s"]
    notes = [line for line in done.stderr.splitlines() if line.strip()][-6:]
    if done.returncode != 0:
        return [f"ended with {done.returncode}", *notes]
    return complaints(stream_file.read_stream(output))


def main() -> int:
    """Record what the command line names. Returns 1 if a stream is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="where the streams are written")
    parser.add_argument("--cupti", type=Path, help="libcupti to record (default: Triton's)")
    parser.add_argument("--workload", action="append", help="only these")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each workload")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cupti = (options.cupti or library_of_triton()).resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as build_folder:
        recorder = build(Path(build_folder))
        for name in options.workload or workloads.GPU_WORKLOADS:
            wrong = record(name, recorder, cupti, options.folder, options.limit)
            output = options.folder / f"{name}.cupti"
            size = output.stat().st_size if output.exists() else 0
            if size > LARGEST:
                wrong.append(f"{size} bytes, more than {LARGEST}")
            failed += bool(wrong)
            counts = observed(stream_file.read_stream(output)) if size else {}
            shown = {key: value for key, value in counts.items() if value}
            sys.stdout.write(f"{'FAIL' if wrong else 'ok  '} {name} {size} bytes {shown}\n")
            sys.stdout.writelines(f"     {line}\n" for line in wrong)
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
