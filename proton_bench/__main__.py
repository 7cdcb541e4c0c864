"""``python -m proton_bench``: the command line, even if ``proton`` is another package's script."""

from __future__ import annotations

import sys

from proton_bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
