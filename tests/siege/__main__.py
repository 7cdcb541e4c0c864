"""Attacks every reader and writer for a given time: ``python -m tests.siege --seconds 600``.

Seeded: the attempt N of an attack is the same with the same seed. Prints a row for each attack.
Returns 1 if one found something; the inputs that reproduce it are kept below ``build/siege``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Processes are forked, which libraries that start threads do not survive.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from siege.campaign import main  # noqa: E402 - found by the path above

if __name__ == "__main__":
    sys.exit(main())
