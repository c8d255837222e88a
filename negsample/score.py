"""``accelerate launch -m negsample.score …``: ``negsample score`` by several processes, on one machine or more."""

import sys

from negsample.cli import main
from negsample.processes import Crew, warn_of_lone_process

if __name__ == "__main__":
    warn_of_lone_process("negsample.score")
    with Crew() as crew:
        main(["score", *sys.argv[1:]], crew)
