"""Estimators on the Hugging Face hub: a model folder fetched by its id, and published under one."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from negsample.corpora import KNOWN
from negsample.errors import InputError
from negsample.models.folder import read_description
from negsample.models.language.model_files import called, check_weights, quiet, reason_of

if TYPE_CHECKING:
    from huggingface_hub import ModelCard

_ID = re.compile(r"(?P<id>[A-Za-z0-9][\w.-]*/[\w.-]+)(@(?P<revision>[\w./-]+))?")
# What a model folder is made of; how it came about (run.json, work/) names files of the machine it was trained on.
_TEXTS = ("config.json", "percentiles.json", "figures.json", "README.md")
_FOLDERS = ("encoder", "judge", "support", "evidence")
# Formats that can hold code are neither fetched nor published.
_UNSAFE = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt", "*.h5", "*.py", "*.joblib")
# Endings of files of pairs.
_DATA = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".gz")


def model_path(model: str | Path) -> Path:
    """The folder that ``model`` names: itself, or what the hub has under ``org/name[@revision]``, fetched or in its cache.

    A name whose first part is a folder here is a path. Raises InputError where the hub has no such model, can't be
    reached, or has another kind of model there.
    """
    path = Path(model).expanduser()
    match = _ID.fullmatch(str(model))
    if match is None or path.exists() or path.parent.is_dir():
        return path
    from huggingface_hub import hf_hub_download, snapshot_download

    name, revision = match["id"], match["revision"]
    with quiet(), _explained(str(model)):
        # Whether it is an estimator is known before anything large is fetched.
        read_description(Path(hf_hub_download(name, "config.json", revision=revision)).parent)
        return Path(snapshot_download(name, revision=revision, ignore_patterns=list(_UNSAFE)))


def publish(folder: Path, name: str, *, public: bool = False, languages: Sequence[str] = ()) -> str:
    """Upload the model folder ``folder`` to the hub as ``org/name``, in one commit; returns its address.

    The model is private unless ``public``; one that is there already gets a new version and stays what it is. The
    model card gets the hub's metadata: library, tags, data sets of the hub, ``languages`` (codes such as ``en``),
    figures. Raises InputError where the folder is damaged, the hub refuses, or the model there is public and this is not.
    """
    if (match := _ID.fullmatch(name)) is None or match["revision"]:
        raise InputError(f"{name!r} is no name on the hub; give org/name")
    description = read_description(folder)
    check_weights(folder, description["weights_sha256"])
    evidence = description["features"].get("evidence")
    if evidence and not evidence["copied"] and called(evidence["lm"]) != evidence["lm"]:
        told = f"reads with the language model {evidence['lm']}, which nobody else has there"
        advice = "train with copy_lm=true if its licence allows that, or with the model's id on the hub"
        raise InputError(f"{folder}: {told}; {advice}")
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi()
    files: dict[str, Path | bytes] = {path: folder / path for path in published(folder)}
    texts = {path: (folder / path).read_text(encoding="utf-8") for path in _TEXTS if path in files}
    texts["README.md"] = str(_card(folder, name, description, languages))
    files |= {path: _unlocated(text, description) for path, text in texts.items()}
    with quiet(), _explained(name):
        if not api.repo_exists(name):
            api.create_repo(name, private=not public)
        elif bool(api.model_info(name).private) == public:
            state, other = ("private", "leave --public out") if public else ("public", "add --public")
            raise InputError(f"{name} is {state} on the hub; {other}, or change it on its page there")
        made = api.create_commit(
            name,
            [CommitOperationAdd(path_in_repo=path, path_or_fileobj=content) for path, content in files.items()],
            commit_message=f"Published by negsample {description.get('negsample', '')}".strip(),
        )
    return f"{api.endpoint}/{name}@{made.oid}"


def published(folder: Path) -> list[str]:
    """The paths below ``folder`` that are published. Raises InputError for a file in a format that can hold code."""
    found = [name for name in (*_TEXTS, "model.safetensors") if (folder / name).is_file()]
    for part in _FOLDERS:
        found += sorted(path.relative_to(folder).as_posix() for path in (folder / part).rglob("*") if path.is_file())
    if unsafe := [name for name in found if any(map(Path(name).match, _UNSAFE))]:
        raise InputError(f"{folder / unsafe[0]}: may hold code, and is not published; remove it")
    return found


def _unlocated(text: str, description: dict[str, Any]) -> bytes:
    """``text`` with files and models called by their names alone: where they lay is nobody's business."""
    judged = description.get("fitted", {}).get("about", {}).get("judgments")
    read = [*description.get("data", {}).get("corpora", []), judged]
    names = {path: Path(path).name for path in read if path and _dataset(path) is None}
    used = [description.get("training", {}).get(name) for name in ("encoder", "lm")]
    names |= {model: called(model) for model in used if model}
    for path in sorted(names, key=len, reverse=True):
        if path != names[path]:
            text = text.replace(path, names[path]).replace(json.dumps(path)[1:-1], names[path])
    return text.encode()


def _dataset(corpus: str) -> str | None:
    """The hub's name of a corpus; None for a file or a folder, and for the embedded sample."""
    if corpus in KNOWN:
        return KNOWN[corpus].id
    local = Path(corpus).exists() or Path(corpus).suffix in _DATA
    return corpus if _ID.fullmatch(corpus) and not local else None


def _card(folder: Path, name: str, description: dict[str, Any], languages: Sequence[str]) -> "ModelCard":
    """The folder's model card, called ``name``, with the hub's metadata."""
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    path = folder / "README.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else f"# {name}\n"
    text = text.replace(f'Estimator.load("{folder.name}")', f'Estimator.load("{name}")')
    card = ModelCard(text, ignore_metadata_errors=True)
    corpora = description.get("data", {}).get("corpora", [])
    figures = description.get("figures", {}).get("test", {})
    results = [
        EvalResult(
            task_type="summarization",
            task_name="summary quality (labels of damaged summaries)",
            dataset_type="held-out",
            dataset_name=", ".join(corpora) or "held-out documents",
            metric_type=metric,
            metric_value=figure["value"],
        )
        for metric, figure in figures.items()
        if isinstance(figure, dict) and figure["value"] is not None
    ]
    card.data = ModelCardData(
        library_name="negsample",
        tags=["negsample", "summarization", "evaluation", "reference-free"],
        language=list(languages) or None,
        datasets=[found for corpus in corpora if (found := _dataset(corpus))] or None,
        model_name=name.partition("/")[2],
        eval_results=results or None,
    )
    return card


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what the hub's client raises (errors of its own, of its network library, of the operating system) into one line."""
    from huggingface_hub import errors

    try:
        yield
    except Exception as error:
        if isinstance(error, InputError):
            raise
        there_not = "no such folder, and the hub has no such model for you"
        log_in, told = "log in (hf auth login, or HF_TOKEN)", reason_of(error)
        status = getattr(getattr(error, "response", None), "status_code", None)
        unreached = isinstance(error, OSError) or type(error).__module__.startswith(("httpx", "httpcore"))
        cases: list[tuple[Any, str]] = [  # the more special first
            (errors.GatedRepoError, f"only for those who asked for it; ask on its page on the hub, and {log_in}"),
            (errors.RepositoryNotFoundError, f"{there_not}; if it is private, {log_in}"),
            (
                errors.RevisionNotFoundError,
                "the hub has the model but not this revision; give a branch, a tag or a commit",
            ),
            (errors.RemoteEntryNotFoundError, "the hub has it, but it has no config.json: not a negsample estimator"),
            (errors.HFValidationError, f"no name on the hub ({told}); give org/name"),
            (status in (401, 403), f"the hub refuses; {log_in} with a token that may do this"),
            (status is not None, f"the hub answers with {status} ({told}); try again later"),
            (
                unreached,
                "no such folder, not in the hub's cache, and the hub can't be reached; check the name and the network",
            ),
            (True, f"can't be had from the hub ({told}); give a folder"),
        ]
        fits = (advice for case, advice in cases if (isinstance(error, case) if isinstance(case, type) else case))
        raise InputError(f"{name}: {next(fits)}") from error
