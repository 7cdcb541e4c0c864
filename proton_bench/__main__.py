"""``python -m proton_bench``: the command line where ``proton`` is someone else's script."""

from __future__ import annotations

import sys

from proton_bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
