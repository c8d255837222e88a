"""``python -m negsample``, and ``accelerate launch -m negsample VERB …``: one verb by several processes."""

import sys

from negsample.cli import main
from negsample.processes import Processes, end, launched, warn_of_lone_process

if __name__ == "__main__":
    warn_of_lone_process()
    several, code = launched(), 0
    # train and reinforce bring processes of their own.
    shared = several and sys.argv[1:2] == ["score"]
    try:
        main(sys.argv[1:], Processes() if shared else None)
    except SystemExit as done:
        if not several:
            raise
        code = done.code if isinstance(done.code, int) else 0
    if several:
        end(code)
