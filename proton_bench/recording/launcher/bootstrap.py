# With Python's option -x the interpreter skips this line instead of the target's first.
"""The file that the interpreter starts instead of the target; see ``runner``.

It is started by its path, because ``-m`` and ``-c`` add the current folder to the search path,
where it could shadow modules; and frames of this file can be distinguished from the target's.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # This folder would shadow modules as well.
        del sys.path[0]

    try:
        from proton_bench.recording.launcher.runner import main

        main()
    except KeyboardInterrupt:  # before the target's first line
        sys.exit(130)
