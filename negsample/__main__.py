"""``python -m negsample``, and ``accelerate launch -m negsample VERB …``: one verb by several processes."""

import sys

from negsample.cli import main
from negsample.processes import Processes, end, launched, warn_of_lone_process

if __name__ == "__main__":
    warn_of_lone_process()
    # train and reinforce bring processes of their own.
    shared = launched() and sys.argv[1:2] == ["score"]
    code = 0
    try:
        main(sys.argv[1:], Processes() if shared else None)
    except SystemExit as done:
        if not launched():
            raise
        code = done.code if isinstance(done.code, int) else 0
    if launched():
        end(code)
