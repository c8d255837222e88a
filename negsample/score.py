"""``accelerate launch -m negsample.score …``: ``negsample score`` by several processes, on one machine or more."""

import sys

from negsample.cli import main
from negsample.processes import Processes, end, warn_of_lone_process

if __name__ == "__main__":
    warn_of_lone_process("negsample.score")
    try:
        main(["score", *sys.argv[1:]], Processes())
    except SystemExit as done:
        end(done.code if isinstance(done.code, int) else 0)
