"""``accelerate launch -m negsample.train --config FILE [key=value …] --out DIR [--resume]``."""

import os
import sys

from negsample.cli import main


def _warn_of_lone_process() -> None:
    """Say so where several CPU processes were asked for and Accelerate started one (huggingface/accelerate 2741).

    Its launcher sets a master address for several processes but leaves starting them on CPUs to MPI.
    """
    asked = os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true" and "MASTER_ADDR" in os.environ
    started = any(name in os.environ for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"))
    if asked and not started:
        print(
            "negsample: 'accelerate launch --cpu' starts one process; for several on CPUs run "
            "ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes N -m negsample.train …",
            file=sys.stderr,
        )


if __name__ == "__main__":
    _warn_of_lone_process()
    main(["train", *sys.argv[1:]])
