"""Transfer experiments, run: what is trained and tested, going on, and sharing a folder."""

import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from plugin_files import write_plugin
from tests_support import story

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.io.run_record import work_folder
from negsample.models.encoders import ENCODERS
from negsample.papers import transfer
from negsample.papers.transfer import run_transfer
from negsample.papers.transfer_config import TransferConfig
from negsample.papers.transfer_report import transfer_table
from negsample.settings import make_settings

ENCODER = "letters"


def make_transfer(values, where="t.yaml"):
    return make_settings(TransferConfig, values, where)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Domains; ``mixed`` holds half of ``near`` again, and ``few`` eight of its documents, under other ids."""
    folder = tmp_path_factory.mktemp("corpora")
    for name, numbers in {"near": range(60), "far": range(100, 160), "mixed": range(30, 90), "few": range(8)}.items():
        with (folder / f"{name}.jsonl").open("w") as stream:
            for number in numbers:
                document, summary = story(number)
                stream.write(json.dumps({"id": f"{name}-{number}", "document": document, "summary": summary}) + "\n")
    return folder


@pytest.fixture(autouse=True)
def _letters(tmp_path_factory, monkeypatch):
    """A small encoder, registered while the test runs."""
    folder = tmp_path_factory.mktemp("plugin")
    write_plugin(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(ENCODERS, "_entries", dict(ENCODERS._entries))
    ENCODERS.register(ENCODER, "letters_encoder:make")


def experiment(corpora, *names, **more):
    train = {"encoder": ENCODER, "epochs": 1, **more.pop("train", {})}
    return make_transfer({"sources": {name: str(corpora / f"{name}.jsonl") for name in names}, "train": train, **more})


def opened(config, out):
    """What ``run_transfer`` has before the first training."""
    with work_folder(out, config.as_dict(), name="experiment.json", what="an experiment", alone=False):
        return transfer.Transfer(config, out)


def told_of(found, told=None):
    """The records of a table, as plain values: those that tell figures (``value``), ``delta`` or ``gain``."""
    rows = transfer_table(found).content()["records"]
    return [row for row in rows if told in (None, row["told"])]


def quiet(line):
    """Where a test does not care what is said."""


def test_each_model_is_tested_on_the_same_documents_of_every_target(corpora, tmp_path, monkeypatch):
    monkeypatch.setattr("negsample.resampling.MIN_UNITS", 2)
    config = experiment(
        corpora, "near", "far", recipes=["crosspair", "delete"], keep_models=True, train={"negatives": 2}
    )
    said = []
    found = run_transfer(config, tmp_path / "t", said.append)
    rows, deltas = (
        {(row["recipe"], row["source"], row["target"]): row for row in told_of(found, told)}
        for told in ("value", "delta")
    )
    assert len(rows) == 8
    assert len(said) == 4
    for cell, figures in found.finished:
        folder = tmp_path / "t" / "cells" / cell.folder
        model = Estimator.load(folder / "model")
        for target in ("near", "far"):
            tests = tmp_path / "t" / "work" / "tests" / str(cell.recipe) / target / "examples" / "test.jsonl.gz"
            examples = list(read_examples(tests))
            labels = np.array([example.label for example in examples])
            scores = model.score([e.document for e in examples], [e.summary for e in examples])
            assert np.load(folder / "scores" / f"{target}.npy") == pytest.approx(scores, abs=1e-5)
            value = np.mean((scores >= 0.5) == (labels == 1))
            if str(cell.recipe) == "delete":
                value = np.corrcoef(labels, scores)[0, 1]
            row = rows[str(cell.recipe), cell.source.name, target]
            assert row["value"] == pytest.approx(100 * value, abs=1e-3)
            assert row["n"] == len(examples) == 18
            assert row["figure"] == ("pearson" if str(cell.recipe) == "delete" else "accuracy")
            kept = figures["test"][target][row["figure"]]
            assert 100 * kept["value"] == pytest.approx(row["value"])
            assert "low" not in row or row["low"] <= row["value"] <= row["high"]
    assert set(deltas) == {key for key in rows if key[1] != key[2]}
    for (recipe, source, target), delta in deltas.items():
        home = rows[recipe, target, target]
        assert delta["value"] == pytest.approx(rows[recipe, source, target]["value"] - home["value"])
        assert "low" not in delta or delta["low"] <= delta["value"] <= delta["high"]
    assert all(any("low" in row for row in own.values()) for own in (rows, deltas))


def test_no_target_test_document_is_trained_on_anywhere(corpora, tmp_path):
    targets = {name: str(corpora / f"{name}.jsonl") for name in ("near", "mixed", "few")}
    config = experiment(corpora, "near", "mixed", targets=targets, mixture=True, leave_one_out=True, few_shot=[4])
    found = run_transfer(config, tmp_path, quiet)
    tested = [e for path in (tmp_path / "work" / "tests").glob("**/test.jsonl.gz") for e in read_examples(path)]
    documents, summaries = {e.document for e in tested}, {e.summary for e in tested}
    made = sorted((tmp_path / "work" / "training").glob("**/examples/*.jsonl.gz"))
    # Two sources, the mixture and two without one, and four pairs of each target; two files each.
    assert len(made) == 2 * (5 + 3)
    for path in made:
        for example in read_examples(path):
            assert example.document not in documents, path
            assert example.summary not in summaries, path
    few = [(cell.source.name, cell.target) for cell, _ in found.finished if cell.shots]
    unseen = [("near", "mixed"), ("mixed", "near"), ("all but near", "near"), ("all but mixed", "mixed")]
    every = ["near", "mixed", "mixture", "all but near", "all but mixed"]
    assert sorted(few) == sorted([*unseen, *((source, "few") for source in every)])
    # Two of eight documents are tested on, and no more than one of ten: some of them are in the training split of ``near``.
    left = {cell.source.name: about["left_out"] for cell, about in found.finished if not cell.shots}
    assert left["near"] > left["mixed"] == 0


def test_a_source_that_is_too_small_is_told_and_left_out(corpora, tmp_path):
    config = experiment(corpora, "near", "far", mixture=True, sizes=[60], few_shot=[500])
    said = []
    found = run_transfer(config, tmp_path, said.append)
    assert [cell.source.name for cell, _ in found.finished] == ["mixture"]
    assert found.not_run["crosspair, fc, near, 60 pairs"] == "near has fewer than 60 training pairs"
    assert found.not_run["crosspair, fc, far, 60 pairs"] == "far has fewer than 60 training pairs"
    # Nothing to compare with.
    assert not told_of(found, "delta")


def test_few_shot_training_goes_on_from_the_source_s_weights(corpora, tmp_path, tiny_bert):
    heads = [{"head": "fc"}, {"head": "cls", "encoder": str(tiny_bert), "max_length": 64, "sizes": [12]}]
    # So small a rate that the adapted model is still its base.
    config = experiment(
        corpora, "near", "far", heads=heads, few_shot=[6], train={"learning_rate": 1e-12, "epochs": 1}, sizes=[30]
    )
    found = run_transfer(config, tmp_path, quiet)
    scores = {
        (cell.head.label, cell.source.name, cell.shots): np.load(
            tmp_path / "cells" / cell.folder / "scores" / f"{target}.npy"
        )
        for cell, _ in found.finished
        for target in [cell.target or ("far" if cell.source.name == "near" else "near")]
    }
    assert len(scores) == 8
    for (head, source, shots), values in scores.items():
        if shots:
            assert values == pytest.approx(scores[head, source, 0], abs=1e-5)
            assert len(set(np.round(values, 6))) > 1
    for cell, about in found.finished:
        assert about["train_pairs"] == (6 if cell.shots else cell.size)
    assert [row["value"] for row in told_of(found, "gain")] == pytest.approx([0] * 4)


def test_an_align_head_is_adapted_from_its_own_weights(corpora, tmp_path, tiny_bert):
    align = {"head": "align", "judges": False, "epochs": 3, "encoder": f"sentence-transformer:{tiny_bert}"}
    config = make_transfer(
        {
            "sources": {name: {"corpus": str(corpora / f"{name}.jsonl"), "limit": 20} for name in ("near", "far")},
            "heads": [align],
            "few_shot": [6],
        }
    )
    found = run_transfer(config, tmp_path, quiet)
    finished = {(cell.source.name, cell.shots): (cell, about) for cell, about in found.finished}
    base, adapted = finished["near", 0], finished["near", 6]
    # The same training with the same start would give the same losses; it starts elsewhere.
    again = [epoch["validation_loss"] for epoch in adapted[1]["epochs"]]
    assert again != [epoch["validation_loss"] for epoch in finished["far", 0][1]["epochs"]]
    before, after = (np.load(tmp_path / "cells" / cell.folder / "scores" / "far.npy") for cell, _ in (base, adapted))
    assert np.abs(before - after).max() > 0
    assert list((tmp_path / "work" / "tests" / "crosspair" / "far").glob("align-*/features/far-0.npz"))


def test_an_interrupted_experiment_goes_on_and_repeats_nothing(corpora, tmp_path, monkeypatch):
    config = experiment(corpora, "near", "far", few_shot=[5])
    whole = run_transfer(config, tmp_path / "whole", quiet)
    trained = []
    real = transfer.Transfer.train

    def stop_at(count):
        def train(self, cell, *args):
            if len(trained) == count:
                raise KeyboardInterrupt
            trained.append(str(cell))
            return real(self, cell, *args)

        return train

    monkeypatch.setattr(transfer.Transfer, "train", stop_at(3))
    with pytest.raises(KeyboardInterrupt):
        run_transfer(config, tmp_path / "cut", quiet)
    monkeypatch.setattr(transfer.Transfer, "train", stop_at(None))
    said = []
    again = run_transfer(config, tmp_path / "cut", said.append)
    assert said[0] == "3 of 4 trainings are finished already"
    assert len(trained) == len(set(trained)) == 4
    one, two = ([{**row, "seconds": 0} for row in told_of(found)] for found in (whole, again))
    assert one == two
    run_transfer(config, tmp_path / "cut", quiet)
    assert len(trained) == 4


def test_a_mistake_before_the_first_training_leaves_the_folder_as_it_was(corpora, tmp_path):
    wrong = experiment(corpora, "near", sizes=[99999])
    with pytest.raises(InputError, match=r"nothing can be trained: .*fewer than 99999 training pairs"):
        run_transfer(wrong, tmp_path / "t", quiet)
    assert not (tmp_path / "t").exists()
    assert len(run_transfer(experiment(corpora, "near", sizes=[10]), tmp_path / "t", quiet).finished) == 1
    # Now it is the folder of that experiment.
    with pytest.raises(InputError, match=r"begun with another configuration \(sizes was \[10\], is \[20\]\)"):
        run_transfer(experiment(corpora, "near", sizes=[20]), tmp_path / "t", quiet)


def test_an_experiment_is_gone_on_with_where_its_corpora_have_changed(corpora, tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_bytes((corpora / "near.jsonl").read_bytes())
    config = make_transfer({"sources": {"own": str(path)}, "train": {"encoder": ENCODER, "epochs": 1}})
    before = run_transfer(config, tmp_path / "t", quiet)
    path.write_bytes((corpora / "far.jsonl").read_bytes())
    # All is finished, so nothing is read again.
    assert run_transfer(config, tmp_path / "t", quiet).finished == before.finished
    (tmp_path / "t" / "cells" / before.finished[0][0].folder / "figures.json").unlink()
    shutil.rmtree(tmp_path / "t" / "work")
    with pytest.raises(InputError, match=r"own\.jsonl: has changed since the experiment was begun"):
        run_transfer(config, tmp_path / "t", quiet)


def test_an_encoder_that_has_changed_is_refused(corpora, tmp_path):
    config = experiment(corpora, "near", "far")
    found = run_transfer(config, tmp_path, quiet)
    first, second = (tmp_path / "cells" / cell.folder / "figures.json" for cell, _ in found.finished)
    text = first.read_text()
    assert found.finished[0][1]["encoder_fingerprint"] in text
    first.write_text(text.replace(found.finished[0][1]["encoder_fingerprint"], "of other weights"))
    second.unlink()
    with pytest.raises(InputError, match=f"fc, far, seed 0: encoder {ENCODER} has changed"):
        run_transfer(config, tmp_path, quiet)


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([(story(number)[0], "One summary for all of them.") for number in range(9)], "the summaries repeat so much"),
        ([story(1), ("", "No document.")], "line 2"),
    ],
)
def test_a_corpus_that_can_t_be_split_is_named_with_its_domain(corpora, tmp_path, pairs, told):
    path = tmp_path / "tiny.jsonl"
    path.write_text("".join(json.dumps({"document": d, "summary": s}) + "\n" for d, s in pairs))
    sources = {"near": str(corpora / "near.jsonl"), "lone domain": str(path)}
    config = make_transfer({"sources": sources, "train": {"encoder": ENCODER, "epochs": 1}})
    with pytest.raises(InputError, match=rf"^lone domain: .*tiny\.jsonl.*{told}") as error:
        run_transfer(config, tmp_path / "t", quiet)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "t").exists()


def test_a_cell_that_another_process_holds_is_waited_for_and_taken_when_it_dies(
    corpora, tmp_path, monkeypatch, negsample
):
    out, path = tmp_path / "t", tmp_path / "t.yaml"
    config = experiment(corpora, "near", "far")
    path.write_text(json.dumps(config.as_dict()))
    whole = opened(config, out)
    script = (
        "import sys; from pathlib import Path; from negsample.io.run_record import trying\n"
        "with trying(Path(sys.argv[1])) as held:\n    print(held, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(whole.lock(whole.cells[0]))]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def pause(seconds):
        # Nothing is left but what the holder has: it dies.
        holder.kill()
        holder.wait()

    # The first time that it waits it says so, as else after five seconds.
    monkeypatch.setattr(transfer, "POLL_SECONDS", 5)
    monkeypatch.setattr(transfer, "time", SimpleNamespace(sleep=pause))
    try:
        assert holder.stdout.readline() == "True\n"
        done = negsample("transfer", "--config", path, "--out", out)
    finally:
        holder.kill()
        holder.communicate()
    trained = [line for line in done.stdout.splitlines() if line[:4] in ("1/2 ", "2/2 ")]
    assert ["fc, far" in trained[0], "fc, near" in trained[1], len(trained)] == [True, True, 2]
    assert "waiting for other processes to end their trainings (1 left)" in done.stderr
