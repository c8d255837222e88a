"""Every packaged configuration: read by its command (a new file unasked); one of each sort is run with --smoke."""

import json

import pytest

from negsample.errors import InputError
from negsample.models import evaluation as figures
from negsample.models.build import takes
from negsample.models.encoders import ENCODERS
from negsample.models.estimator import Estimator
from negsample.models.summarizers.language_model import load_summarizer
from negsample.negatives.recipe import parse_recipe
from negsample.papers import stand_ins as smoke
from negsample.papers.run import read_grid
from negsample.papers.transfer_config import read_transfer
from negsample.registry import parse
from negsample.settings import FOLDER, read_file, read_settings
from negsample.train.config import read_config
from negsample.train.job import loss_of
from negsample.train.reinforce.config import ReinforceConfig
from negsample.train.search.settings import read_search

FILES = sorted(FOLDER.glob("*.yaml"))
# A file of each command and each sort of training that it has.
RUN = ("align", "p3_experiment1", "p3_table1_newsroom", "p3_table3_transfer", "p2_table2", "reinforce_sample")
READ = {
    "tables": lambda path: read_grid(read_file(path)["table"], path),
    "transfer": read_transfer,
    "tune": read_search,
    "reinforce": lambda path: read_settings(ReinforceConfig, path, (), "reinforce"),
    "train": read_config,
}


def kind_of(values):
    """The command that a configuration is for."""
    for key, command in (("table", "tables"), ("sources", "transfer"), ("space", "tune"), ("policy", "reinforce")):
        if key in values:
            return command
    return "train"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_is_read_by_its_command(path):
    command = kind_of(read_file(path.stem))
    config = READ[command](path.stem)
    if command == "train":
        assert loss_of(config.resolved(), parse_recipe(config.recipe))
        assert takes(config.head) == "tokens" or ENCODERS.get(parse(config.resolved().encoder).name)
    for other in {"train", "tune", "transfer", "reinforce"} - {command} if command != "train" else ():
        with pytest.raises(InputError, match=f"is not for {other} .* run negsample {command}"):
            READ[other](path.stem)
    text = path.read_text(encoding="utf-8")
    if path.stem.startswith("p3_"):
        assert text.startswith("# Bao et al. 2021, ")
        assert f"negsample {command} " in text
        assert f"--config {path.stem} " in text


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A few vectors of common words, in GloVe's format."""
    path = tmp_path_factory.mktemp("vectors") / "few.txt"
    words = "the of a to and in for on that by is with".split()
    path.write_text("".join(f"{word} {number}.5 -{number % 3}.0 0.25\n" for number, word in enumerate(words)))
    return path


@pytest.fixture
def tiny(tiny_bert, vectors, monkeypatch):
    """A smoke run made smaller still: what it replaces and writes is the same, with encoders that cost no seconds."""
    monkeypatch.setattr(figures, "RESAMPLES", 10)
    monkeypatch.setattr(smoke, "_BOUNDS", {"limit": 12, "epochs": 1})
    monkeypatch.setitem(smoke._MOST, "negatives", 1)
    monkeypatch.setattr(smoke, "_WHOLE", {"tokens": str(tiny_bert), "align": f"sentence-transformer:{tiny_bert}"})
    parts = {name: f"glove({vectors}{more})" for name, more in (("glove", ""), ("use", ",unit=sentence"))}
    monkeypatch.setattr(smoke, "_PARTS", {**parts, "use-large": f"sentence-transformer:{tiny_bert}"})
    monkeypatch.setattr(smoke, "_ANY_OTHER", f"glove({vectors},unit=sentence,pool=max)")
    monkeypatch.setattr(smoke, "_PACKAGED", ())


@pytest.mark.parametrize("name", RUN)
def test_runs_to_its_end_with_smoke(name, tiny, negsample, tmp_path):
    values = read_file(name)
    command, out = kind_of(values), tmp_path / "out"
    run = ("--config", name, "--smoke", "--out", out)
    if command == "train":
        done = negsample("train", *run)
        # The model that is left can be used.
        Estimator.load(out)
    elif command == "tables":
        done = negsample("tables", values["table"], *run)
        table = json.loads((out / f"{values['table']}.json").read_text())
        assert {record["head"] for record in table["records"] if "head" in record} == set(values["heads"])
    elif command == "reinforce":
        done = negsample("reinforce", *run)
        # Every system by every metric, tested against the weights before the training; two documents have no intervals.
        table = json.loads((out / "test" / "compare.json").read_text())
        assert [section["metric"] for section in table["sections"]] == values["metrics"]
        for section in table["sections"]:
            assert {system["system"] for system in section["systems"]} >= {"start", "lead"}
            assert all(system["low"] is system["high"] is None for system in section["systems"])
            assert all(0 < system["p"] <= 1 for system in section["systems"][1:])
        load_summarizer(str(out)).summarize(["A story of one sentence."])
    else:
        done = negsample("transfer", *run)
        page = (out / "transfer.html").read_text()
        assert "<html" in page
        assert all(name in page for name in values["sources"])
        # Printed in the paper's table that the file is for.
        assert "97.5" in page
    record = json.loads((out / "run.json").read_text())
    assert record["smoke"] is True
    assert '"sample' in json.dumps(record["config"])
    assert values.get("corpus") == "sample" or "smoke run" in done.stdout


def test_words_of_a_table_win_over_its_file(vectors, negsample, tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(f"corpus: sample:science\nencoders: ['glove:{vectors}']\nheads: [lstm]\nepochs: 9\nseed: 5\n")
    arguments = ("tables", "p3-table1", "--config", path)
    negsample(*arguments, "limit=8", "heads=[fc]", "epochs=1", "--out", tmp_path / "t")
    table = json.loads((tmp_path / "t" / "p3-table1.json").read_text())
    (cell,) = (record for record in table["records"] if record["value"] is not None)
    assert (cell["column"], cell["head"], cell["epochs"]) == (f"glove:{vectors}", "fc", 1)
    record = json.loads((tmp_path / "t" / "run.json").read_text())
    assert (record["config"]["sources"], record["seed"]) == (
        {"sample:science": {"corpus": "sample:science", "limit": 8}},
        5,
    )
    assert record["smoke"] is False
    assert "leave them out" in negsample(*arguments, "recipe=add", "--out", tmp_path / "u", check=2).stderr
