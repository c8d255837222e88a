"""``accelerate launch -m negsample.train --config FILE [key=value …] --out DIR [--resume]``."""

import sys

from negsample.cli import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
