"""``python -m negsample …``, which ``accelerate launch -m negsample …`` starts several times (it starts modules alone).

``train`` and ``reinforce`` find the other processes themselves; ``score`` is given them.
"""

import sys

from negsample.cli import main
from negsample.processes import Processes, end, warn_of_lone_process

if __name__ == "__main__":
    warn_of_lone_process(" ".join(["negsample", *sys.argv[1:2]]))
    if sys.argv[1:2] != ["score"]:
        main()
    try:
        main(None, Processes())
    except SystemExit as done:
        end(done.code if isinstance(done.code, int) else 0)
