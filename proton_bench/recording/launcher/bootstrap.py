# Python's option -x has the interpreter skip this line in place of the target's first.
"""The file that the interpreter is started with in place of the target; see ``runner``.

Started by its path, because ``-m`` and ``-c`` put the current folder in front of the path, where it
could shadow modules; and a frame of this file is known not to belong to the target.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # This folder, which would shadow modules just as well.
        del sys.path[0]

    try:
        from proton_bench.recording.launcher.runner import main

        main()
    except KeyboardInterrupt:  # before the target's first line
        sys.exit(130)
