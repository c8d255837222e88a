"""Several workers on one study: every trial is run once, also where one is killed; on each kind of storage."""

import csv
import os
import signal
from collections import Counter

import optuna
import pytest
from tune_support import SEARCH, Stub, missing_postgres, postgres, start_worker, wait_for

from negsample.errors import InputError
from negsample.train.search.settings import read_search
from negsample.train.search.storage import open_storage
from negsample.train.search.trials import ATTEMPT, FIRST, INTERRUPTED, KILLED, SILENT, WORKER, open_study, slots_of
from negsample.train.search.tune import Timing, tune

TRIALS = 20


@pytest.fixture(scope="module", autouse=True)
def _loaded(tmp_path_factory):
    """What a storage imports is imported once, before workers are forked."""
    open_storage(f"sqlite:///{tmp_path_factory.mktemp('warm')}/s.db")


@pytest.fixture(scope="session")
def database():
    if (why := missing_postgres()) is not None:
        pytest.skip(why)
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "journal", "postgresql"])
def url(request, tmp_path):
    if request.param == "postgresql":
        url = request.getfixturevalue("database")
        yield url
        optuna.delete_study(study_name="s", storage=open_storage(url))
    elif request.param == "journal":
        yield f"journal:{tmp_path}/journal"
    else:
        yield f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "search.yaml"
    path.write_text(SEARCH, encoding="utf-8")
    return path


def load(url, trials=TRIALS):
    study = optuna.load_study(study_name="s", storage=open_storage(url))
    return study, slots_of(study.trials, trials)


def test_two_workers_one_killed_and_resumed(url, config, tmp_path):
    stub, out = Stub(tmp_path / "log", 0.1), tmp_path / "out"
    first, second = (start_worker(config, url, TRIALS, out, stub) for _ in range(2))
    # The first is killed in the middle of a trial, after at least five trials.
    ended = lambda: stub.lines("end")  # noqa: E731
    wait_for(lambda: len(ended()) >= 5)

    def inside():
        # Held while we look, so that it is still there when it is killed, however slow the machine.
        os.kill(first.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        mine = [line["event"] for line in stub.lines() if line["pid"] == first.pid]
        if mine and mine[-1] == "epoch 0":
            return True
        os.kill(first.pid, signal.SIGCONT)
        return False

    wait_for(inside)
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    again = start_worker(config, url, TRIALS, out, stub)
    for worker in (second, again):
        worker.join(60)
        assert worker.exitcode == 0

    study, slots = load(url)
    assert len(slots) == TRIALS
    assert {slot.state for slot in slots} <= {"complete", "pruned"}
    # One attempt was interrupted; it was run again with the same parameters, and nothing else is in the study.
    interrupted = [trial for trial in study.trials if INTERRUPTED in trial.user_attrs]
    assert [trial.state.name for trial in interrupted] == ["FAIL"]
    assert interrupted[0].user_attrs[INTERRUPTED] == KILLED
    assert len(study.trials) == TRIALS + 1
    (slot,) = [slot for slot in slots if len(slot.attempts) == 2]
    assert slot.attempts[0].number == interrupted[0].number == slot.last.user_attrs[FIRST]
    assert slot.attempts[0].params == slot.last.params
    # Distinct: random parameters never come twice.
    assert len({slot.last.params["learning_rate"] for slot in slots}) == TRIALS
    # Each trial was begun once, the interrupted one twice; no epoch of any was done twice.
    starts = Counter(line["folder"] for line in stub.lines("start"))
    assert starts == {str(s.number): len(s.attempts) for s in slots}
    epochs = Counter((line["folder"], line["event"]) for line in stub.lines() if line["event"].startswith("epoch"))
    assert set(epochs.values()) == {1}
    ends = Counter(line["folder"] for line in stub.lines("end"))
    assert ends == {str(s.number): 1 for s in slots if s.state == "complete"}
    # The killed one and the other took part (the third may have come too late), and none is still at work.
    assert {first.pid, second.pid} <= {trial.user_attrs[WORKER]["process"] for trial in study.trials}
    assert [path.stem for path in (out / "workers").iterdir()] == [interrupted[0].user_attrs[WORKER]["name"]]
    best = min((s for s in slots if s.state == "complete"), key=lambda s: s.last.value)
    assert [path.name for path in (out / "trials").iterdir()] == [str(best.number)]
    with open(out / "trials.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["trial"]) for row in rows] == [slot.number for slot in slots]
    assert sum(int(row["attempts"]) for row in rows) == TRIALS + 1


def test_a_worker_elsewhere_is_dead_only_when_silent(tmp_path, config):
    """Without a common folder only signs of life tell: a long trial is left alone, a killed one is run again."""
    url, stub = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 1.3)
    timing = Timing(alive=0.1, silent=3.0, look=0.05)
    first = start_worker(config, url, 2, tmp_path / "a", stub, timing)
    wait_for(lambda: stub.lines("start"))
    second = start_worker(config, url, 2, tmp_path / "b", stub, timing)
    # A trial lasts longer than the silence that means death: both end, none is taken from its worker.
    for worker in (first, second):
        worker.join(30)
        assert worker.exitcode == 0
    assert Counter(line["event"] for line in stub.lines())["start"] == 2
    stub.seconds = 0.2
    third = start_worker(config, url, 4, tmp_path / "c", stub, timing)
    wait_for(lambda: len(stub.lines("start")) == 3)
    os.kill(third.pid, signal.SIGKILL)
    third.join()
    fourth = start_worker(config, url, 4, tmp_path / "d", stub, timing)
    fourth.join(40)
    assert fourth.exitcode == 0
    study, slots = load(url, 4)
    assert {slot.state for slot in slots} <= {"complete", "pruned"}
    assert [len(slot.attempts) for slot in slots] == [1, 1, 2, 1]
    assert slots[2].attempts[0].user_attrs[INTERRUPTED] == SILENT
    assert slots[2].attempts[0].params == slots[2].last.params
    assert len(study.trials) == 5


def test_four_workers_never_take_one_trial_twice(tmp_path, config):
    """On SQLite, which has no row locks."""
    url, stub = f"sqlite:///{tmp_path}/s.db", Stub(tmp_path / "log", 0.0)
    workers = [start_worker(config, url, 16, tmp_path / "out", stub) for _ in range(4)]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert Counter(line["folder"] for line in stub.lines("start")) == {str(number): 1 for number in range(16)}
    study, slots = load(url, 16)
    assert len(study.trials) == 16
    assert all(slot.finished for slot in slots)


def test_a_finished_study_is_not_run_again_and_can_be_made_longer(tmp_path, config):
    url, stub, out = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), tmp_path / "out"
    search = read_search(config)
    lines: list[str] = []
    first = tune(search, "s", url, 3, out, trainer=stub, say=lines.append)
    assert len(stub.lines("start")) == len(lines) == 3
    again = tune(search, "s", url, 3, out, trainer=stub)
    assert len(stub.lines("start")) == 3
    assert again.best.number == first.best.number
    longer = tune(search, "s", url, 5, out, trainer=stub, say=lines.append)
    assert len(stub.lines("start")) == 5
    assert [slot.number for slot in longer.slots] == [0, 1, 2, 3, 4]
    assert lines[-1].endswith("5 of 5 finished")


def test_with_fewer_trials_wanted_all_finished_ones_stay(tmp_path, config):
    """The best is last, so that it and its model would be lost with the trials after the second."""
    config.write_text(SEARCH.replace("{name: median, n_startup_trials: 3}", "none"), encoding="utf-8")
    url, stub, out = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), tmp_path / "out"
    losses = iter([0.5, 0.4, 0.3, 0.2, 0.1])

    def trainer(config, folder, *, follow, **options):
        stub(config, folder, follow=follow)
        return {"epochs": [{"validation_loss": next(losses)}], "seconds": 0.0}

    search = read_search(config)
    tune(search, "s", url, 5, out, trainer=trainer)
    kept = {name: (out / name).read_text() for name in ("best.yaml", "trials.csv", "study.json")}
    again = tune(search, "s", url, 2, out, trainer=trainer)
    assert len(stub.lines("start")) == 5
    assert [slot.number for slot in again.slots] == [0, 1, 2, 3, 4]
    assert again.best.number == 4
    assert kept == {name: (out / name).read_text() for name in kept}
    assert [path.name for path in (out / "trials").iterdir()] == ["4"]


def test_finished_trials_count_before_those_that_are_not(tmp_path):
    """By hand: of trials 0 waiting, 1 complete, 2 waiting, 3 failed, 4 waiting."""
    states = [optuna.trial.TrialState[name] for name in ("WAITING", "COMPLETE", "WAITING", "FAIL", "WAITING")]
    study = optuna.create_study()
    for state in states:
        study.add_trial(optuna.create_trial(state=state, value=1.0 if state.name == "COMPLETE" else None))
    numbers = [[slot.number for slot in slots_of(study.trials, wanted)] for wanted in range(1, 7)]
    assert numbers == [[1, 3], [1, 3], [0, 1, 3], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]


def test_the_others_fill_a_study_whose_maker_was_killed(tmp_path, config):
    url, stub, search = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), read_search(config)
    study, made = open_study("s", open_storage(url), maximised=False, content=search.given)
    assert made
    study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.WAITING))
    done = tune(search, "s", url, 3, tmp_path / "out", trainer=stub)
    assert [slot.number for slot in done.slots] == [0, 1, 2]
    assert len(stub.lines("start")) == 3


def test_where_two_make_a_copy_one_is_run(tmp_path, config):
    """Whichever worker looks, the slots are the same: the lower number counts, for copies and for trials too many."""
    url, stub, search = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), read_search(config)
    study, _ = open_study("s", open_storage(url), maximised=False, content=search.given)
    fail, waiting = optuna.trial.TrialState.FAIL, optuna.trial.TrialState.WAITING
    study.add_trial(optuna.create_trial(state=fail, user_attrs={INTERRUPTED: KILLED}))
    for _ in range(2):
        study.add_trial(optuna.create_trial(state=waiting, user_attrs={FIRST: 0, ATTEMPT: 1}))
    for _ in range(3):
        study.add_trial(optuna.create_trial(state=waiting))
    done = tune(search, "s", url, 3, tmp_path / "out", trainer=stub)
    assert [[attempt.number for attempt in slot.attempts] for slot in done.slots] == [[0, 1], [3], [4]]
    assert [trial.number for trial in study.get_trials(states=(waiting,))] == [2, 5]


def test_accelerate_launch_is_refused(tmp_path, config, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="without accelerate launch"):
        tune(read_search(config), "s", f"journal:{tmp_path}/j", 3, tmp_path / "out")


def test_stopped_by_hand_the_trial_is_run_again(tmp_path, config):
    url, stub, out = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), tmp_path / "out"
    search = read_search(config)

    def stopped(config, folder, *, follow, **options):
        stub(config, folder, follow=follow)
        raise KeyboardInterrupt

    # However often: being stopped is no fault of the trial's.
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            tune(search, "s", url, 2, out, trainer=stopped)
    assert not list((out / "workers").iterdir())
    done = tune(search, "s", url, 2, out, trainer=stub)
    assert [len(slot.attempts) for slot in done.slots] == [6, 1]
    assert done.slots[0].attempts[0].params == done.slots[0].last.params


def test_a_trial_that_always_kills_its_worker_is_given_up(tmp_path, config):
    url, out = f"journal:{tmp_path}/journal", tmp_path / "out"
    search = read_search(config)

    def dies(config, folder, **options):
        raise RuntimeError("no way")

    for _ in range(4):
        with pytest.raises(RuntimeError, match="no way"):
            tune(search, "s", url, 1, out, trainer=dies)
    done = tune(search, "s", url, 1, out, trainer=dies)
    assert [slot.state for slot in done.slots] == ["failed"]
    assert "no way" in done.slots[0].reason
    assert done.best is None


def test_another_configuration_or_folder_is_refused(tmp_path, config):
    url, stub, out = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), tmp_path / "out"
    tune(read_search(config), "s", url, 1, out, trainer=stub)
    config.write_text(SEARCH + "seed: 5\n", encoding="utf-8")
    with pytest.raises(InputError, match="begun with another configuration \\(seed differs\\)"):
        tune(read_search(config), "s", url, 1, out, trainer=stub)
    with pytest.raises(InputError, match="belongs to study 's', not 't'"):
        tune(read_search(config), "t", url, 1, out, trainer=stub)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(InputError, match="holds something else"):
        tune(read_search(config), "t", url, 1, tmp_path / "full", trainer=stub)
    optuna.create_study(study_name="foreign", storage=open_storage(url)).ask()
    with pytest.raises(InputError, match="not begun by negsample tune"):
        tune(read_search(config), "foreign", url, 1, tmp_path / "x", trainer=stub)
