"""A corpus' own splits: what they hold out is nowhere else, whatever reads them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests_support import story

from negsample.corpora.pairs import describe_part
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.negatives.recipe import parse_recipe
from negsample.papers.transfer_config import (
    TransferConfig,
    choose,
    held_out,
    split_domain,
    target_examples,
    training_examples,
)
from negsample.settings import make_settings
from negsample.train.config import make_config
from negsample.train.data import find_corpora, make_examples
from negsample.train.job import train
from negsample.train.reinforce import read_sources
from negsample.train.reinforce.config import ReinforceConfig

NAMES = ("train", "validation", "test")
# Documents and summaries by number. Also held out: 20, 12 and their like by document, 13's and 22's summaries.
SPLITS = {
    "train": [*((n, n) for n in range(10)), (20, 30), (12, 31), (32, 13), (33, 22)],
    "validation": [*((n, n) for n in range(10, 16)), (21, 34), (35, 23)],
    "test": [(n, n) for n in range(20, 26)],
}
KEPT = {"train": range(10), "validation": range(10, 16), "test": range(20, 26)}
TOLD = "skipped 6 records: 6 document or summary is in a held-out split too"
CROSSPAIR = parse_recipe("crosspair")


def written(folder, layout, splits=SPLITS):
    """The settings that read ``splits``: of a folder in the hub's layout, or of three files with ids of their own."""
    folder.mkdir(exist_ok=True)
    for name, pairs in splits.items():
        texts = [(story(d)[0], story(s)[1]) for d, s in pairs]
        documents, summaries = zip(*texts, strict=True)
        pq.write_table(
            pa.table({"article": documents, "highlights": summaries}), folder / f"{name}-00000-of-00001.parquet"
        )
        rows = [json.dumps({"id": n, "document": d, "summary": s}) for n, (d, s) in enumerate(texts)]
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    if layout == "files":
        held = {f"{name}_split": str(folder / f"{name}.jsonl") for name in NAMES[1:]}
        return {"corpus": str(folder / "train.jsonl"), **held}
    for name in NAMES:
        (folder / f"{name}.jsonl").unlink()
    return {"corpus": f"cnn_dailymail:{folder}", **{f"{name}_split": name for name in NAMES}}


@pytest.fixture(params=["folder", "files"])
def values(request, tmp_path):
    return written(tmp_path / "corpus", request.param)


def documents(path):
    return {example.document for example in read_examples(path) if example.kind == "original"}


def expected(name):
    return {story(n)[0] for n in KEPT[name]}


def test_examples_are_of_the_corpus_own_splits(values, tmp_path):
    config = make_config(values)
    find_corpora(config)
    made = make_examples(config, CROSSPAIR, tmp_path / "made")
    assert {name: documents(tmp_path / "made" / f"{name}.jsonl.gz") for name in NAMES} == {
        name: expected(name) for name in NAMES
    }
    assert made["skipped_text"] == TOLD
    # Each split is cut by itself.
    few = make_examples(make_config({**values, "limit": 4}), CROSSPAIR, tmp_path / "few")
    assert [few["splits"][name]["originals"] for name in NAMES] == [4, 4, 4]


def test_of_a_domain_too_and_a_document_that_moves_is_noticed(values, tmp_path):
    config = make_config(values)
    split = split_domain(config, tmp_path / "domain")
    choice = choose([split], held_out([split]), None, 0)
    assert (choice.train_pairs, len(choice.validation), choice.left_out) == (10, 6, 0)
    training_examples(choice, [config], CROSSPAIR, tmp_path / "training")
    target_examples(config, CROSSPAIR, tmp_path / "domain", tmp_path / "tests")
    for name, place in zip(NAMES, ("training", "training", "tests"), strict=True):
        assert documents(tmp_path / place / f"{name}.jsonl.gz") == expected(name)
    moved = {**SPLITS, "train": SPLITS["train"][1:], "test": [*SPLITS["test"], (0, 0)]}
    written(tmp_path / "corpus", "files" if config.train_split is None else "folder", moved)
    with pytest.raises(InputError, match="has changed"):
        target_examples(config, CROSSPAIR, tmp_path / "domain", tmp_path / "again")
    with pytest.raises(InputError, match="train_split is said in sources"):
        make_settings(TransferConfig, {"sources": {"a": "sample"}, "train": {"train_split": "train"}}, "x")


def test_a_reward_may_read_held_out_documents_when_they_are_named(values):
    settings = make_settings(ReinforceConfig, {**values, "unsupervised": values["test_split"]}, "x")
    sources, alone, about = read_sources(settings)
    assert {name: {source.document for source in own} for name, own in sources.items()} == {
        name: expected(name) for name in NAMES
    }
    assert {source.document for source in alone} == expected("test")
    assert (about["unsupervised_held_out"], about["skipped"]) == (6, TOLD)
    assert all(len(source.references) == 1 for own in sources.values() for source in own)


def test_a_run_tells_its_splits_and_goes_on_with_no_others(values, tiny_bert, tmp_path):
    more = {"encoder": str(tiny_bert), "max_length": 64, "epochs": 1, "recipe": "delete"}
    found = train(make_config({**values, **more}), tmp_path / "m")
    assert found["skipped"] == TOLD
    assert found["cut"]["test"]["pairs"] == 12
    card = (tmp_path / "m" / "README.md").read_text()
    own = [values.get(f"{name}_split") for name in NAMES]
    assert describe_part({"own_splits": own}) in card
    other = {**values, "validation_split": values["test_split"], "test_split": values["validation_split"]}
    with pytest.raises(InputError, match="validation_split was"):
        train(make_config({**other, **more}), tmp_path / "m", resume=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"validation_split": None}, "at least the last two"),
        ({"validation_split": "test"}, "none twice"),
        ({"test_split": "tset"}, "tset"),
        ({"test_split": "gone.jsonl"}, r"gone\.jsonl: no such file"),
    ],
)
def test_splits_that_are_not_there_are_refused(change, told, tmp_path):
    values = {**written(tmp_path / "corpus", "folder"), **change}
    with pytest.raises(InputError, match=told):
        make_examples(make_config(values), CROSSPAIR, tmp_path / "made")


def test_a_split_that_is_all_in_another_one_is_refused(tmp_path):
    values = written(tmp_path / "corpus", "files", {**SPLITS, "validation": SPLITS["test"]})
    with pytest.raises(InputError, match="validation_split: every document of it"):
        make_examples(make_config(values), CROSSPAIR, tmp_path / "made")
