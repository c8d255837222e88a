"""``accelerate launch -m negsample.train.reinforce --config FILE [key=value …] --out DIR [--resume]``."""

import sys

from negsample.cli import main
from negsample.processes import warn_of_lone_process

if __name__ == "__main__":
    warn_of_lone_process("negsample.train.reinforce")
    main(["reinforce", *sys.argv[1:]])
