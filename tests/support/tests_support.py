"""Small texts for tests, written by rule so that each is different; models that have learned nothing; the command line."""

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Real data beside the checkout, where it is; tests that read it skip with a reason where it is not.
SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

_SUBJECTS = ["baker", "pilot", "nurse", "farmer", "judge", "singer", "miner", "tailor", "sailor", "teacher"]
_VERBS = ["sold", "bought", "lost", "found", "painted", "moved", "cleaned", "counted", "buried", "borrowed"]
_OBJECTS = ["lamp", "boat", "piano", "ladder", "carpet", "barrel", "statue", "wagon", "mirror", "basket"]
_PLACES = ["harbour", "market", "station", "library", "valley", "island", "castle", "bridge", "garden", "tower"]


def story(number: int) -> tuple[str, str]:
    """A small document of four sentences, and a summary of two; different for every number below 1,000."""
    a, b, c = number % 10, number // 10 % 10, number // 100 % 10
    who, what, where = _SUBJECTS[a], _OBJECTS[b], _PLACES[(a + b + c) % 10]
    other, verb = _SUBJECTS[(a + 3 + c) % 10], _VERBS[(b + c) % 10]
    document = (
        f"The {who} {verb} a {what} near the {where}. It was a cold morning in week {number}. "
        f"Later the {other} came by and asked about the {what}. Nobody at the {where} knew the price."
    )
    return document, f"A {who} {verb} a {what} at the {where}. The {other} asked about it."


def write_pairs(path: Path, count: int) -> None:
    """Write ``count`` pairs to ``path``."""
    lines = []
    for number in range(count):
        document, summary = story(number)
        lines.append(json.dumps({"id": f"p{number}", "document": document, "summary": summary}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def save_untrained(folder: Path, head: str, encoder: str, **how: Any) -> Path:
    """A model folder of ``head`` that has learned nothing: its scores are as different as any."""
    import numpy as np

    from negsample.models.build import make_network, new_parts
    from negsample.models.folder import save_folder

    parts = new_parts(head, encoder, **{"max_length": 64, "seed": 1, **how})
    if parts.network is None:
        parts.features.fit(np.array([3, 4]), np.array([2, 2]))
        make_network(parts, seed=1)
    save_folder(parts, folder, {"recipe": "crosspair", "loss": "bce"}, "# card\n")
    return folder


def unlike_new(folder: Path) -> list[str]:
    """The files below ``folder`` that have another mode than a new file."""
    (new := folder / "new").touch()
    mode = new.stat().st_mode
    new.unlink()
    return [path.name for path in folder.rglob("*") if path.is_file() and path.stat().st_mode != mode]


def split_of(kinds: list[str], labels: list[float], documents: list[int], aspects: Any = None) -> Any:
    """A split without texts, each document of a domain of its own; ``aspects`` [n, 4]: labels given of them, and a labelled
    summary then counts three times."""
    import numpy as np

    from negsample.train.data import Split

    names, numbers = list(dict.fromkeys(kinds)), np.arange(len(kinds), dtype=np.int32)
    said = None if aspects is None else np.array(aspects, np.float32).T
    return Split(
        None, None, None, np.array(documents, np.int32), numbers, np.array(labels, np.float32),  # type: ignore[arg-type]
        np.array([names.index(kind) for kind in kinds], np.int32), names,
        np.array(documents, np.int32), list(map(str, range(max(documents) + 1))), 1, said, 1.0 if said is None else 3.0,
    )  # fmt: skip


def command_line(
    *arguments: object, check: int | None = 0, cwd: Path | None = None, input: str | bytes = "", encoding: str = "utf-8"
) -> subprocess.CompletedProcess:
    """What a process ``negsample ARGUMENTS`` would do, in this one, since each new one would import torch for seconds.

    ``check``: the exit code that it must have; ``encoding``: of what it prints.
    """
    from negsample.cli import main

    words = [str(argument) for argument in arguments]
    given = input.encode() if isinstance(input, str) else input
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"),
        **{
            name: io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for name in ("stdout", "stderr")
        },
    }
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "argv", ["negsample", *words])
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main(words)
            code = 0
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        finally:
            signal.signal(signal.SIGTERM, before)
    texts = [streams[name].buffer.getvalue().decode(encoding) for name in ("stdout", "stderr")]  # type: ignore[attr-defined]
    assert check is None or code == check, texts[1]
    return subprocess.CompletedProcess(words, code, *texts)
