import dataclasses
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from tests_support import story
from tiny_lm import build

from negsample.errors import InputError
from negsample.models.align.alignment import SALIENCE
from negsample.models.align.judge import Judge, JudgeNetwork, load_judge
from negsample.models.align.named_features import ASPECTS, MATCHES, feature_set
from negsample.models.estimator import Estimator
from negsample.models.features.align import Compared
from negsample.models.heads.align import untrained
from negsample.models.language.networks import load_pretrained
from negsample.negatives import NEGATIVES
from negsample.sentences import split_sentences
from negsample.train.config import make_config
from negsample.train.data import Split
from negsample.train.fit import align, align_features
from negsample.train.fit import judge as judges
from negsample.train.fit.align import beginning, compare_untrained, rank, ranking_loss
from negsample.train.fit.align_features import ComputedFeatures, compute_features
from negsample.train.fit.judge import Group, Stretches, group_loss, train_judge
from negsample.train.job import train

ALONE = Accelerator(cpu=True)


def split_of(kinds: list[str], labels: list[float], documents: list[int]) -> Split:
    names = list(dict.fromkeys(kinds))
    nothing = None
    return Split(
        documents=nothing,  # type: ignore[arg-type]
        summaries=nothing,  # type: ignore[arg-type]
        ids=nothing,  # type: ignore[arg-type]
        document_of=np.array(documents, np.int32),
        summary_of=np.arange(len(kinds), dtype=np.int32),
        labels=np.array(labels, np.float32),
        kinds=np.array([names.index(kind) for kind in kinds], np.int32),
        kind_names=names,
        width=1,
    )


def test_what_ranks_above_what() -> None:
    kinds = ["original", "swap", "swap", "entity", "original", "swap"]
    split = split_of(kinds, [1.0, 0.8, 0.2, 0.5, 1.0, 0.4], [0, 0, 0, 0, 1, 1])
    found = rank(split)
    overall, coverage, support, coherence, form = ({tuple(pair) for pair in pairs.tolist()} for pairs in found.pairs)
    assert overall == {(0, 1), (0, 2), (0, 3), (1, 2), (4, 5)}
    assert coherence == {(0, 1), (0, 2), (1, 2), (4, 5)}
    assert support == {(0, 3)}
    assert coverage == form == set()
    assert [sorted(rows.tolist()) for rows in found.documents] == [[0, 1, 2, 3], [4, 5]]


def test_the_beginning_holds_whole_documents() -> None:
    kinds = ["original", "swap", "original", "swap", "entity", "original", "swap"]
    split = split_of(kinds, [1, 0.5, 1, 0.4, 0.2, 1, 0.1], [0, 0, 1, 1, 1, 2, 2])
    assert [len(beginning(split, most)) for most in range(1, 9)] == [2, 2, 5, 5, 5, 7, 7, 7]
    some = beginning(split, 3)
    assert some.labels.tolist() == pytest.approx([1, 0.5, 1, 0.4, 0.2])
    assert some.summary_of.tolist() == [0, 1, 2, 3, 4]


def test_figures_beside_the_untrained_head() -> None:
    split = split_of(["original", "swap", "swap", "original", "swap"], [1, 0.5, 0, 1, 0], [0, 0, 0, 1, 1])
    trained = np.zeros((5, 5), np.float32)
    trained[[0, 3]] = 1.0  # both originals above all their copies
    plain = np.zeros((5, 5), np.float32)
    plain[1] = -1.0  # one copy of three below, the others level: (1 + .5 + .5) / 3
    rows = compare_untrained(split, trained, plain, 0)
    assert [(row["kind"], row["output"], row["n"]) for row in rows] == [("swap", "score", 3), ("swap", "coherence", 3)]
    assert rows[0]["trained"] == 1.0
    assert rows[0]["untrained"] == pytest.approx(2 / 3)
    assert rows[0]["gain"] == pytest.approx(1 / 3)
    assert 0 <= rows[0]["low"] <= rows[0]["high"] <= 0.5


def test_a_copy_stands_beside_its_own_original() -> None:
    # One document with two summaries, each followed by its copy, which is worse.
    split = split_of(["original", "swap", "original", "swap"], [1, 0.5, 1, 0.5], [0, 0, 0, 0])
    logits = np.tile(np.array([[1.0], [0.5], [0.2], [0.1]], np.float32), 5)
    assert [row["trained"] for row in compare_untrained(split, logits, -logits, 0)] == [1.0, 1.0]


def test_the_loss_is_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    split = split_of(["original", "swap", "original", "swap", "entity"], [1, 0.5, 1, 0.4, 0.2], [0, 0, 1, 1, 1])
    rng = np.random.default_rng(0)
    network = untrained()
    computed = ComputedFeatures(
        rng.random((5, len(feature_set())), np.float32),
        np.ones((5, len(ASPECTS)), bool),
        rng.random((15, SALIENCE), np.float32),
        rng.random((15, len(MATCHES)), np.float32),
        np.array([0, 1, 3, 6, 10, 15]),
    )
    sizes: list[int] = []
    network.mix.register_forward_hook(lambda module, given, found: sizes.append(len(found)))
    losses = []
    for block in (512, 2):
        monkeypatch.setattr(align, "_BLOCK", block)
        logits = align.forward(network, computed, np.arange(5))
        losses.append(float(ranking_loss(logits, split.labels, rank(split), np.arange(5)).detach()))
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    assert sizes == [5, 2, 2, 1]


def test_judge_loss_by_hand() -> None:
    groups = [Group("form", "a", ("b", "c")), Group("coherence", "d", ("e",))]
    marks = torch.tensor([[1.0, 5.0], [0.0, 9.0], [3.0, 6.0], [0.0, 2.0], [7.0, 1.5]])
    loss, right = group_loss(marks, groups)
    # In form b (0) is below a (1), c (3) is not; in coherence e (1.5) is below d (2). The other marks say nothing.
    gaps = np.array([1.0, -2.0, 0.5])
    assert float(loss) == pytest.approx(np.log1p(np.exp(-gaps)).mean(), rel=1e-5)
    assert right == {"form": 0.5, "coherence": 1.0}
    assert group_loss(marks[:3], groups[:1])[1] == {"form": 0.5}


DOCUMENTS = [" ".join(story(number)[0] for number in range(k, k + 2)) for k in range(12)]


def test_groups_depend_on_seed_aspect_and_number_alone() -> None:
    one, other = Stretches(DOCUMENTS, 1), Stretches(DOCUMENTS, 1)
    assert one.group("form", 5) == other.group("form", 5)
    other.group("coherence", 3)
    assert one.group("coherence", 7) == other.group("coherence", 7)
    groups = one.batch(0)
    assert [group.aspect for group in groups] == ["form"] * 8 + ["coherence"] * 5
    for group in groups:
        assert any(group.stretch in document for document in DOCUMENTS)
        assert all(copy.split() != group.stretch.split() for copy in group.copies)
        # Form is judged of one sentence, coherence of several.
        sentences = len(split_sentences(group.stretch))
        assert sentences == 1 if group.aspect == "form" else 2 <= sentences <= 4


def test_calibration_gives_each_mark_mean_0_and_spread_1_over_its_own_texts(tiny_bert: Path) -> None:
    network = small_judge(tiny_bert).network
    network.centre, network.scale = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 0.5])
    raw = torch.tensor([[4.0, 3.0], [8.0, 9.0], [9.0, 4.0], [1.0, 5.0]])
    shown = (raw - network.centre) / network.scale
    network.calibrate([shown[:2, 0], shown[2:, 1]])
    again = (raw - network.centre) / network.scale
    # 4 and 8 are the texts of form, 4 and 5 those of coherence: each half a gap from their mean, spread gap / √2.
    np.testing.assert_allclose(again[:2, 0], [-(0.5**0.5), 0.5**0.5], atol=1e-6)
    np.testing.assert_allclose(again[2:, 1], [-(0.5**0.5), 0.5**0.5], atol=1e-6)
    before = network.centre.clone()
    network.calibrate([shown[:1, 0], shown[:0, 1]])
    assert torch.equal(network.centre, before)


def test_readings_by_hand(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = small_judge(tiny_bert)
    read: list[str] = []
    form = {"The baker sold a lamp.": 2.0, "A lamp sold.": -1.0, "The baker sold a lamp. A lamp sold.": 9.0}
    coherence = {"The baker sold a lamp.": 0.5, "A lamp sold.": 4.0, "The baker sold a lamp. A lamp sold.": 3.0}

    def run(texts: list[str]) -> np.ndarray:
        read.extend(texts)
        return np.array([[form[text], coherence[text]] for text in texts], np.float32).reshape(-1, 2)

    monkeypatch.setattr(judge, "_run", run)
    both = "The baker sold a lamp. A lamp sold."
    # Form: mean and least over the sentences, each read alone; coherence: the text as a whole.
    assert judge.readings([both, "A lamp sold.", ""]).tolist() == [[0.5, -1.0, 3.0], [-1.0, -1.0, 4.0], [0.0, 0.0, 0.0]]
    assert sorted(read) == sorted(form)
    judge.readings([both])
    assert len(read) == 3


def small_judge(tiny_bert: Path) -> Judge:
    network, tokenizer, _ = load_pretrained(str(tiny_bert))
    torch.manual_seed(0)
    return Judge(JudgeNetwork(network), tokenizer)


def killed_at(call: int, work: Callable[..., object]) -> Callable[..., object]:
    """``work`` until its ``call``-th call, which is interrupted."""
    calls = itertools.count(1)

    def run(*arguments: object) -> object:
        if next(calls) == call:
            raise KeyboardInterrupt
        return work(*arguments)

    return run


def test_a_judge_that_was_killed_ends_with_the_same_weights(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "_SAVE_EVERY", 2)
    whole, broken = small_judge(tiny_bert), small_judge(tiny_bert)
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    train_judge(ALONE, whole, DOCUMENTS, DOCUMENTS[:3], 5, 0, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(judges, "_backward", killed_at(4, judges._backward))
        with pytest.raises(KeyboardInterrupt):
            train_judge(ALONE, broken, DOCUMENTS, DOCUMENTS[:3], 5, 0, tmp_path / "broken")
    broken = small_judge(tiny_bert)
    train_judge(ALONE, broken, DOCUMENTS, DOCUMENTS[:3], 5, 0, tmp_path / "broken")
    results = [whole, broken]
    one, other = (judge.network.state_dict() for judge in results)
    assert all(torch.equal(one[name], other[name]) for name in one)
    texts = ["The baker sold a lamp.", "Lamp a sold baker the. " * 40, ""]
    assert np.isfinite(results[0].readings(texts)).all()
    saved = results[0].save(tmp_path / "judge")
    again = load_judge(tmp_path / "judge", saved["fingerprint"])
    np.testing.assert_allclose(again.readings(texts), results[0].readings(texts), atol=1e-5)
    with pytest.raises(InputError, match="damaged or changed"):
        load_judge(tmp_path / "judge", "0" * 64)


def test_every_kind_of_damage_reaches_the_judge() -> None:
    seen: dict[str, set[str]] = {"form": set(), "coherence": set()}
    stretches = Stretches(DOCUMENTS, 1)
    named = {id(NEGATIVES.get(kind)): kind for kinds in judges.KINDS.values() for kind in kinds}
    real = NEGATIVES.get

    class Watching:
        def get(self, kind: str) -> Callable[..., object]:
            def make(*arguments: object) -> object:
                made = real(kind)(*arguments)
                seen[aspect].add(named[id(real(kind))])
                return made

            return make

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "NEGATIVES", Watching())
        for aspect in seen:
            for number in range(80):
                stretches.group(aspect, number)
    assert seen == {aspect: set(kinds) for aspect, kinds in judges.KINDS.items()}


@pytest.mark.parametrize("sentence", ["I saw it all.", "It rained."])
def test_sentences_too_short_to_damage(sentence: str, tiny_bert: Path, tmp_path: Path) -> None:
    documents = [
        " ".join([sentence, "He went home now.", "They came in again.", f"We left {number}."]) for number in range(9)
    ]
    with pytest.raises(InputError, match="can be damaged in form"):
        train_judge(ALONE, small_judge(tiny_bert), documents, documents, 2, 0, tmp_path)


def test_scripts_without_spaces_have_stretches() -> None:
    documents = [
        f"今天天气很好我们都出去了。我们去公园散步看花{number}。公园里有很多人在跑步。晚上我们一起回家吃饭。"
        for number in range(9)
    ]
    assert {group.aspect for group in Stretches(documents, 0).batch(0)} == {"form", "coherence"}


def test_documents_without_stretches(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = [f"A lamp was sold. Nobody knew the price in week {number}." for number in range(12)]
    with monkeypatch.context() as patch:
        patch.setattr(judges, "_backward", lambda *_: pytest.fail("a step was made"))
        with pytest.raises(InputError, match="no training document has 4 sentences or more; set judges=false"):
            train_judge(ALONE, small_judge(tiny_bert), short, DOCUMENTS, 1, 0, tmp_path)
    # Twelve held-out documents of which none can be used are as good as none.
    found = []
    for name, held_out in (("short", short), ("none", [])):
        (tmp_path / name).mkdir()
        found.append(train_judge(ALONE, small_judge(tiny_bert), DOCUMENTS, held_out, 1, 0, tmp_path / name))
    assert found[0] == found[1]
    assert set(found[0]) == {"form", "coherence"}


def test_the_judge_learns_where_the_run_computes(
    pairs_file: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[torch.device] = []
    judge = SimpleNamespace(network=SimpleNamespace(to=moved.append))
    monkeypatch.setattr(align, "new_judge", lambda *_: judge)
    monkeypatch.setattr(align, "train_judge", killed_at(1, lambda: None))
    with pytest.raises(KeyboardInterrupt):
        train(make_config(settings(pairs_file, tiny_bert)), tmp_path / "model")
    assert moved == [torch.device("cpu")]


RECIPE = {"sentence-delete": 1.0, "entity": 1.0, "repeat": 1.0, "shuffle": 1.0, "replace": 1.0}


def settings(pairs_file: Path, tiny_bert: Path, **more: object) -> dict[str, object]:
    given = {
        "corpus": str(pairs_file),
        "recipe": RECIPE,
        "negatives": 4,
        "head": "align",
        "encoder": f"sentence-transformer:{tiny_bert}",
        "epochs": 2,
        "judge_steps": 2,
    }
    return {**given, **more}


def test_training_leaves_a_model_with_aspects(pairs_file: Path, tiny_bert: Path, tmp_path: Path) -> None:
    found = train(make_config(settings(pairs_file, tiny_bert)), tmp_path / "model")
    assert found is not None
    assert {row["kind"] for row in found["ranking"]} <= set(RECIPE)
    assert set(found["judge"]) == {"form", "coherence"}
    told = json.loads((tmp_path / "model" / "config.json").read_text())
    assert told["loss"] == "ranking+bce"
    assert told["head_options"] == {"sources": ["judge"]}
    estimator = Estimator.load(tmp_path / "model")
    documents, summaries = zip(*(story(number) for number in range(6)), strict=True)
    scores, aspects = estimator.score(documents, summaries, aspects=True)
    assert set(aspects) == {"coverage", "support", "coherence", "form"}
    # Order and company change nothing.
    back = estimator.score(documents[::-1], summaries[::-1])[::-1]
    alone = np.concatenate([estimator.score([d], [s]) for d, s in zip(documents, summaries, strict=True)])
    np.testing.assert_allclose(back, scores, atol=1e-5)
    np.testing.assert_allclose(alone, scores, atol=1e-5)


def test_without_training_it_is_the_untrained_sum(pairs_file: Path, tiny_bert: Path, tmp_path: Path) -> None:
    found = train(make_config(settings(pairs_file, tiny_bert, epochs=0)), tmp_path / "model")
    assert found is not None
    assert "judge" not in found
    assert all(row["gain"] == 0 for row in found["ranking"])
    document, summary = story(1)
    from negsample.scoring.metrics import make_metric
    from negsample.scoring.scorer import Item

    metric = make_metric(f"align-untrained(encoder=(sentence-transformer:{tiny_bert}))")
    score = metric.score([Item(document, summary)]).values[0]
    assert Estimator.load(tmp_path / "model").score([document], [summary])[0] == pytest.approx(score, abs=1e-5)
    missing = metric.score([Item(document, "!!")])
    assert missing.reasons == ["the summary has no word, so no aspect can be judged"]


@pytest.mark.parametrize("copied", [False, True])
def test_a_language_model_that_reads_the_document(
    pairs_file: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))
    lm = build(tmp_path / "lm", "gpt", limit=64)
    config = make_config(settings(pairs_file, tiny_bert, judges=False, epochs=1, lm=str(lm), copy_lm=copied))
    train(config, tmp_path / "model")
    told = json.loads((tmp_path / "model" / "config.json").read_text())
    assert told["head_options"] == {"sources": ["evidence"]}
    # The scales come from the training summaries; the model is copied only where that is asked for.
    assert len(told["features"]["evidence"]["scales"]) == 7
    assert (tmp_path / "model" / "evidence").exists() == copied
    documents, summaries = zip(*(story(number) for number in range(4)), strict=True)
    scored = Estimator.load(tmp_path / "model").score_pairs(documents, summaries)
    # A document of more than 32 tokens, half of the model's window, is read in part, and that is told.
    assert scored.cut.all()
    shutil.rmtree(lm)
    if not copied:
        with pytest.raises(InputError, match="is no folder"):
            Estimator.load(tmp_path / "model")
        return
    estimator = Estimator.load(tmp_path / "model")
    alone = np.concatenate([estimator.score([d], [s]) for d, s in zip(documents, summaries, strict=True)])
    np.testing.assert_allclose(alone, scored.scores, atol=1e-5)


def test_a_language_model_that_cannot_be_had_is_told_before_any_work(
    pairs_file: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="head fc has no language model"):
        train(make_config({"head": "fc", "lm": "gpt2", "corpus": str(pairs_file)}), tmp_path / "model")
    with pytest.raises(InputError, match="lm must be"):
        make_config({"head": "align", "lm": " "})
    with pytest.raises(InputError, match="no masked or causal language model"):
        train(make_config(settings(pairs_file, tiny_bert, lm=str(tiny_bert))), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_training_twice_gives_the_same_weights(pairs_file: Path, tiny_bert: Path, tmp_path: Path) -> None:
    config = make_config(settings(pairs_file, tiny_bert, judges=False))
    hashes = []
    for name in ("one", "other"):
        train(config, tmp_path / name)
        hashes.append(json.loads((tmp_path / name / "config.json").read_text())["weights_sha256"])
    assert hashes[0] == hashes[1]


def test_settings_that_do_not_fit_are_refused(pairs_file: Path, tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a loss of its own"):
        train(make_config(settings(pairs_file, tiny_bert, loss="mse")), tmp_path / "a")
    with pytest.raises(InputError, match="epochs must be at least 1"):
        make_config({"head": "cls", "epochs": 0})
    with pytest.raises(InputError, match="no token vectors"):
        train(dataclasses.replace(make_config(settings(pairs_file, tiny_bert)), encoder="glove"), tmp_path / "b")


class Texts:
    """A store of texts."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def __getitem__(self, place: int) -> np.ndarray:
        return self.texts[place]

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        return np.array([len(self.texts[row]) for row in rows])


class Counted:
    """Features that count letters, and how many pairs they are given at a time."""

    sources: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.calls: list[int] = []

    def compare(self, documents: list[str], summaries: list[str]) -> list[Compared]:
        self.calls.append(len(documents))
        one, present = np.ones((1, 1), np.float32), np.ones(4, bool)
        pairs = zip(documents, summaries, strict=True)
        rest = [0] * (len(feature_set()) - 2)
        return [Compared(np.array([len(d), len(s), *rest], np.float32), one, one, present) for d, s in pairs]


def test_long_texts_are_compared_in_smaller_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = split_of(["original", "swap", "original", "swap", "swap"], [1, 0.5, 1, 0.4, 0.2], [0, 0, 1, 1, 1])
    texts = {"documents": Texts(["d" * 10, "d" * 3]), "summaries": Texts(["s", "ss", "s", "s", "s"])}
    split = dataclasses.replace(split, **texts)  # type: ignore[arg-type]
    found = []
    # Bytes, a document counted once: 11, 2, 4, 1, 1; sixes are full after the first, the third and the fourth pair.
    for most, calls in ((1 << 20, [5]), (6, [1, 2, 2])):
        monkeypatch.setattr(align_features, "_BYTES", most)
        features = Counted()
        found.append(compute_features(ALONE, features, split, tmp_path / str(most), "train").features[:, :2])  # type: ignore[arg-type]
        assert features.calls == calls
    assert found[0].tolist() == found[1].tolist() == [[10, 1], [10, 2], [3, 1], [3, 1], [3, 1]]


def test_a_whole_split_does_not_take_the_short_part_of_its_beginning(tmp_path: Path) -> None:
    split = split_of(["original", "swap", "original", "swap"], [1, 0.5, 1, 0.4], [0, 0, 1, 1])
    split = dataclasses.replace(split, documents=Texts(["text"] * 2), summaries=Texts(["text"] * 4))  # type: ignore[arg-type]
    sizes = [
        len(compute_features(ALONE, Counted(), part, tmp_path, "validation"))
        for part in (beginning(split, 2), split, split)
    ]  # type: ignore[arg-type]
    assert sizes == [2, 4, 4]
