"""``negsample info``, ``cache`` and ``publish``: what there is, and handing a model on."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from negsample.errors import InputError
from negsample.terminal import say

# The file of arguments that an experiment begins its folder with; a run of train has none.
_EXPERIMENTS = {"experiment.json": "experiment", "table_settings.json": "table"}


def info(
    path: Annotated[
        str | None, Argument(help="Model folder, run folder or file; nothing: this installation.", metavar="DIR|FILE")
    ] = None,
) -> None:
    """What a model, a run, a corpus or a file of examples is; without a path: versions, and the embedding caches."""
    if path is None:
        from negsample.io.run_record import versions

        _print(versions())
        cache()
        return
    from negsample.io.read import is_sample

    folder = Path(path)
    # Its run.json is the last of an experiment's files.
    experiment = next((what for name, what in _EXPERIMENTS.items() if (folder / name).is_file()), None)
    if path == "ready" and not folder.exists():
        from negsample.models.ready import ready_parts

        _model(path, ready_parts()[1])
    elif not folder.exists() and not is_sample(path):
        raise InputError(f"{path}: no such file or folder")
    elif not folder.is_dir():
        _file(path)
    elif (folder / "config.json").is_file():
        from negsample.models.folder import read_description
        from negsample.models.language.model_files import check_weights

        about = read_description(folder)
        check_weights(folder, about["weights_sha256"])
        _model(path, about)
    elif experiment is not None and not (folder / "run.json").is_file():
        say(f"{path}: an unfinished {experiment}; start the same command again")
    elif experiment is None and (folder / "work").is_dir():
        from negsample.train.fit.checkpoint import find_checkpoint

        found = find_checkpoint(folder / "work")
        place = f"at step {found[1].step}, epoch {found[1].epoch + 1}" if found else "its head has no checkpoint yet"
        say(f"{path}: a training run that has not finished ({place}); go on with --resume")
    elif (folder / "run.json").is_file():
        _run(folder / "run.json")
    else:
        raise InputError(f"{path}: neither a model nor a run (no config.json, no run.json); name another, or a file")


def _print(facts: dict[str, Any]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name:<{width}}  {value}")


def _model(name: str, about: Mapping[str, Any]) -> None:
    from negsample.commands.train import print_figures

    training, data = about.get("training", {}), about.get("data", {})
    facts = {
        "model": name,
        "head": about["head"],
        "encoder": about["encoder"]["name"],
        "recipe": about["recipe"],
        "loss": about["loss"],
        "corpora": ", ".join(data.get("corpora", [])),
        "pairs": data.get("pairs", ""),
        "data": str(data.get("fingerprint", ""))[:16],
        "seed": training.get("seed", ""),
    }
    if "fitted" in about:
        from negsample.models.fitted import Fitted

        fitted = Fitted.from_plain(about["fitted"])
        facts |= {
            "fitted from": about.get("base", ""),
            "targets": ", ".join(
                target if target == one.human else f"{target} (people's {one.human})"
                for target, one in fitted.targets.items()
            ),
            "metrics": ", ".join(metric.name for metric in fitted.metrics),
        }
        if judged := fitted.about:
            told = f"{judged['summaries']} summaries of {judged['documents']} documents, seed {judged['seed']}"
            facts["judgments"] = f"{judged['judgments']}: {told}"
    facts["written by"] = f"negsample {about.get('negsample')}"
    _print({key: value for key, value in facts.items() if value not in ("", "none")})
    if "figures" in about:
        print_figures(about["figures"])


def _run(path: Path) -> None:
    from negsample.commands.train import print_examples

    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        facts = {"run": path, "command": " ".join(about.get("command", []))}
        facts |= {key: about.get(key, "") for key in ("finished", "seconds", "device", "seed")}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{path}: can't be read as the record of a run ({error})") from None
    _print(facts)
    if "splits" in (about.get("data") or {}):
        print_examples(about["data"])


def _file(path: str) -> None:
    from negsample.io.read import read_rows
    from negsample.text import word_count

    fields, kinds, lengths, texts = (Counter[str]() for _ in range(4))
    records = broken = 0
    for row in read_rows(path):
        records += 1
        broken += row.error is not None
        fields.update(row.fields.keys())
        if isinstance(kind := row.fields.get("kind"), str):
            kinds[kind] += 1
        for name in ("document", "summary"):
            if isinstance(text := row.fields.get(name), str):
                lengths[name] += word_count(text)
                texts[name] += 1
    say(f"{path}: {records} records" + (f", {broken} of them broken" if broken else ""))
    for name, count in fields.items():
        mean = f", {lengths[name] / texts[name]:.1f} words on average" if name in lengths else ""
        say(f"  {name}: in {count}{mean}")
    for kind, count in kinds.most_common():
        say(f"  kind {kind}: {count}")


def cache(
    clear: Annotated[bool, Option("--clear", help="Delete the cached embeddings.")] = False,
    name: Annotated[str | None, Argument(help="Only this encoder's cache.", metavar="NAME")] = None,
) -> None:
    """Show, or clear, the cached embeddings."""
    from negsample.models.embedding_cache import cache_root, clear_cache, find_caches

    if clear:
        say(f"freed {clear_cache(name) / 1e6:.1f} MB")
        return
    caches = find_caches(name)
    say(f"embedding cache: {cache_root()}, {sum(found.bytes for found in caches) / 1e6:.1f} MB")
    for found in caches:
        say(f"  {found.name} {found.fingerprint[:16]}: {found.rows} vectors, {found.bytes / 1e6:.1f} MB")


def publish(
    folder: Annotated[str, Argument(help="Model folder, as 'negsample train' writes it.", metavar="DIR")],
    name: Annotated[str, Argument(help="Its name on the Hugging Face hub.", metavar="ORG/NAME")],
    public: Annotated[bool, Option("--public", help="Everybody may see it; else it is private.")] = False,
    languages: Annotated[
        list[str] | None, Option("--language", help="Of its texts, for the model card, as in en; may be repeated.")
    ] = None,
) -> None:
    """Upload an estimator and its model card to the Hugging Face hub; --model ORG/NAME then loads it anywhere."""
    from negsample.models.hub import publish as upload

    say(f"published: {upload(Path(folder), name, public=public, languages=languages or ())}")
