"""Outside of a recording, all files are written by `proton_bench/support/files.py`."""

from __future__ import annotations

import re

from architecture.source_tree import ROOT, files

WRITES = re.compile(
    r"os\.(replace|rename)\(|mkstemp\(|NamedTemporaryFile\(|\.write_(text|bytes)\("
    r"|\bopen\([^)\n]*['\"][wxa]b?\+?['\"]"
)
# These write for no other reader, or may not replace a file.
OTHERS = {
    "proton_bench/support/files.py",
    "proton_bench/cli/boundary.py",  # /dev/null
    "proton_bench/report/text/ci.py",  # adds to the summary that GitHub reads
    "proton_bench/gate/processes.py",  # the log of a process that runs
    # Folders for temporary files:
    "proton_bench/plugin/kernel_ir.py",
    "plugins/proton_bench_plugins/instrumentation/collector.py",
}


def writers() -> set[str]:
    """Return the modules that write files themselves."""
    return {
        name
        for path in files(".py")
        if (name := str(path.relative_to(ROOT))).startswith(("proton_bench/", "plugins/"))
        and WRITES.search(path.read_text(encoding="utf-8"))
    }


def test_nothing_else_writes_files() -> None:
    assert writers() == OTHERS
