"""The metrics against their peers, each pair in one run: ROUGE, mover's similarities, Fréchet distance.

    python benchmarks/metrics.py

Runs rouge.py, metrics_movers.py and metrics_frechet.py beside this file, which can also be run alone.
"""

import subprocess
import sys
from pathlib import Path

PARTS = ("rouge", "metrics_movers", "metrics_frechet")


def main() -> None:
    """Run each part in a process of its own, so that none warms another's caches."""
    for part in PARTS:
        print(f"== {part}", flush=True)
        subprocess.run([sys.executable, str(Path(__file__).with_name(f"{part}.py"))], check=True)


if __name__ == "__main__":
    main()
