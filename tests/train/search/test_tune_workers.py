"""Several workers on one study: every trial is run once, also where one is killed; on each kind of storage."""

import json
import os
import signal
import sqlite3
import threading
import time
from collections import Counter

import optuna
import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from tune_support import SEARCH, Held, Stub, missing_postgres, postgres, start_worker, wait_for

import negsample.train.search.study as study_module
from negsample.errors import InputError
from negsample.train.search import tune
from negsample.train.search.settings import read_search
from negsample.train.search.study import (
    WORKER,
    attempts,
    best_of,
    counted,
    open_storage,
    open_study,
    reason_of,
    state_of,
)

TRIALS = 12
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


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


def load(url):
    study = optuna.load_study(study_name="s", storage=open_storage(url))
    return study, counted(study.trials)


def has_shown_that_it_lives(url, number):
    """Whether the worker of a trial has given its first sign of life, without which Optuna never takes it for dead."""
    study, _ = load(url)
    if url.startswith("journal"):
        return True
    asked = f"SELECT 1 FROM trial_heartbeats WHERE trial_id = {study.trials[number]._trial_id}"
    with study._storage._backend.engine.connect() as connection:
        return connection.exec_driver_sql(asked).first() is not None


def test_two_workers_one_killed_and_resumed(url, config, tmp_path):
    stub, out = Stub(tmp_path / "log"), tmp_path / "out"
    # The first is killed in the middle of its trial, after at least three trials of the second, which ends all that are left.
    first = start_worker(config, url, TRIALS, out, Held(stub.log))
    wait_for(lambda: stub.lines("epoch 1") and has_shown_that_it_lives(url, 0))
    second = start_worker(config, url, TRIALS, out, stub)
    wait_for(lambda: len(stub.lines("end")) >= 3)
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    second.join()
    # Another comes when the first has been silent for long enough.
    time.sleep(3)
    again = start_worker(config, url, TRIALS + 3, out, stub, silent=1)
    again.join()
    assert (second.exitcode, again.exitcode) == (0, 0)

    study, trials = load(url)
    done = [trial for trial in trials if trial.state.is_finished()]
    assert len(done) == TRIALS + 3
    assert {state_of(trial) for trial in done} <= {"complete", "pruned"}
    # All took part.
    assert {first.pid, second.pid, again.pid} == {trial.user_attrs[WORKER]["process"] for trial in study.trials}
    # Distinct: random parameters never come twice.
    assert len({trial.params["learning_rate"] for trial in done}) == len(done)
    # Each trial was begun once, the killed one twice; no epoch of any was done twice.
    starts = Counter(line["folder"] for line in stub.lines("start"))
    killed = [line for line in stub.lines() if line["pid"] == first.pid][-1]["folder"]
    if url.startswith("journal"):
        # Optuna keeps no signs of life in a journal: a new trial is run in place of the killed one, which stays as it is.
        assert [trial.number for trial in trials if trial not in done] == [int(killed)]
        assert state_of(trials[int(killed)]) == "running"
        assert set(starts.values()) == {1}
    else:
        (last,) = [trial for trial in done if len(attempts(trial)) == 2]
        assert attempts(last)[0] == int(killed)
        assert state_of(study.trials[int(killed)]) == "failed"
        assert study.trials[int(killed)].params == last.params
        assert starts == {str(attempts(trial)[0]): len(attempts(trial)) for trial in trials}
        assert sorted(last.intermediate_values) == [0, 1, 2] or state_of(last) == "pruned"
    epochs = Counter((line["folder"], line["event"]) for line in stub.lines() if line["event"].startswith("epoch"))
    assert set(epochs.values()) == {1}
    ends = Counter(line["folder"] for line in stub.lines("end"))
    assert ends == {str(attempts(trial)[0]): 1 for trial in done if state_of(trial) == "complete"}
    kept = {path.name for path in (out / "trials").iterdir()}
    best = attempts(best_of(done, maximised=False))[0]
    assert kept - ({killed} if url.startswith("journal") else set()) == {str(best)}
    rows = json.loads((out / "study.json").read_text())["trials"]
    assert [(row["trial"], row["attempts"]) for row in rows] == [(attempts(t)[0], attempts(t)) for t in trials]


@pytest.mark.parametrize("late", [False, True])
def test_who_was_taken_for_dead_goes_on_with_another_trial(tmp_path, config, late):
    url, stub, out = f"sqlite:///{tmp_path}/s.db", Stub(tmp_path / "log", 0.0), tmp_path / "out"

    def trainer(config, folder, *, callbacks, **options):
        first = not stub.lines("start")
        found = stub(config, folder, callbacks=callbacks) if late else None
        if first:
            optuna.load_study(study_name="s", storage=open_storage(url)).tell(0, state=optuna.trial.TrialState.FAIL)
        return found or stub(config, folder, callbacks=callbacks)

    trials = tune(read_search(config), "s", url, 3, out, trainer=trainer)
    assert [state_of(trial) for trial in trials] == ["failed", "complete", "complete"]
    assert reason_of(trials[0]) == "its worker was killed"


def test_four_workers_never_take_one_trial_twice(tmp_path, config):
    """On SQLite, which has no row locks; of trials that wait to be run again."""
    url, stub = f"sqlite:///{tmp_path}/s.db", Stub(tmp_path / "log", 0.0)
    search = read_search(config)
    study = open_study(open_storage(url), "s", search)
    for _ in range(16):
        study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.WAITING))
    workers = [start_worker(config, url, 16, tmp_path / "out", stub) for _ in range(4)]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    starts = Counter(line["folder"] for line in stub.lines("start"))
    assert set(starts.values()) == {1}
    assert set(starts) >= {str(number) for number in range(16)}
    _, trials = load(url)
    assert 16 <= len(trials) < 20
    assert all(trial.state.is_finished() for trial in trials)


def test_a_finished_study_is_not_run_again_and_can_be_made_longer(tmp_path, config):
    """The best of five is last, so that it and its model would be lost with the trials after the second."""
    config.write_text(SEARCH.replace("{name: median, n_startup_trials: 3}", "none"), encoding="utf-8")
    url, stub, out = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), tmp_path / "out"
    losses, lines = iter([0.5, 0.4, 0.3, 0.2, 0.1]), []

    def trainer(config, folder, *, callbacks, **options):
        stub(config, folder, callbacks=callbacks)
        return {"epochs": [{"validation_loss": next(losses)}], "seconds": 0.0}

    search = read_search(config)
    tune(search, "s", url, 3, out, trainer=trainer)
    tune(search, "s", url, 5, out, trainer=trainer, say=lines.append)
    assert len(lines) == 2
    assert lines[-1].endswith("5 of 5 finished")
    kept = {name: (out / name).read_text() for name in ("best.yaml", "trials.csv", "study.json")}
    for wanted in (5, 2):
        again = tune(search, "s", url, wanted, out, trainer=trainer)
        assert [trial.number for trial in again] == [0, 1, 2, 3, 4]
        assert best_of(again, maximised=False).number == 4
    assert len(stub.lines("start")) == 5
    assert kept == {name: (out / name).read_text() for name in kept}
    assert [path.name for path in (out / "trials").iterdir()] == ["4"]


def test_accelerate_launch_is_refused(tmp_path, config, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="without accelerate launch"):
        tune(read_search(config), "s", f"journal:{tmp_path}/j", 3, tmp_path / "out")


@pytest.mark.parametrize(
    ("storage", "stop"), [("journal:{}/journal", KeyboardInterrupt), ("sqlite:///{}/s.db", SystemExit)]
)
def test_stopped_by_hand_the_trial_is_run_again(tmp_path, config, storage, stop):
    url, stub, out = storage.format(tmp_path), Stub(tmp_path / "log", 0.0), tmp_path / "out"
    search = read_search(config)

    def stopped(config, folder, *, callbacks, **options):
        stub(config, folder, callbacks=callbacks)
        raise stop

    # However often: being stopped is no fault of the trial's.
    for _ in range(5):
        with pytest.raises(stop):
            tune(search, "s", url, 2, out, trainer=stopped)
    trials = tune(search, "s", url, 2, out, trainer=stub)
    assert [state_of(trial) for trial in trials] == ["complete", "complete"]
    assert [len(attempts(trial)) for trial in trials] == [6, 1]
    assert load(url)[0].trials[0].params == trials[0].params


def test_a_trial_that_the_program_fails_in_is_not_tried_again(tmp_path, config):
    url, out = f"journal:{tmp_path}/journal", tmp_path / "out"
    search = read_search(config)

    def dies(config, folder, **options):
        raise RuntimeError("no way")

    with pytest.raises(RuntimeError, match="no way"):
        tune(search, "s", url, 1, out, trainer=dies)
    (trial,) = tune(search, "s", url, 1, out, trainer=dies)
    assert state_of(trial) == "failed"
    assert reason_of(trial) == "the program failed: RuntimeError('no way')"


def test_a_trial_that_always_kills_its_worker_is_given_up(tmp_path, config):
    """Four attempts, each found dead by the next worker, which then tells the storage's callback."""
    storage, search = open_storage(f"sqlite:///{tmp_path}/s.db"), read_search(config)
    study = open_study(storage, "s", search)
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        storage.get_heartbeat_stale_trial_callback()(study, study.trials[trial.number])
    trials = counted(study.trials)
    assert [(state_of(trial), len(attempts(trial))) for trial in trials] == [("failed", 4), ("waiting", 2)]
    assert reason_of(trials[0]) == "its worker was killed"


def test_a_locked_database_is_waited_for(tmp_path, config, monkeypatch):
    monkeypatch.setattr(study_module, "_SAID", (0.2, 60.0))
    path, told = tmp_path / "s.db", []
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")

    def say(text, error):
        told.append(text)
        holder.execute("ROLLBACK")

    monkeypatch.setattr(study_module, "say", say)
    assert tune(read_search(config), "s", f"sqlite:///{path}", 1, tmp_path / "out", trainer=Stub(tmp_path / "log", 0.0))
    (line,) = told
    assert "database is locked" in line


def falling_silent(monkeypatch, answers):
    """The database refuses each statement that ``answers`` says no to, from the first epoch's report on."""

    def opened(*given):
        storage = open_storage(*given)

        @event.listens_for(storage.engine, "before_cursor_execute")
        def refuse(connection, cursor, statement, *_):
            if not answers():
                raise OperationalError(statement, {}, Exception("terminating connection\nby an administrator"))

        return storage

    monkeypatch.setattr(study_module, "open_storage", opened)


def test_a_database_that_comes_back_loses_nothing(tmp_path, config, monkeypatch):
    stub, out, left = Stub(tmp_path / "log", 0.0), tmp_path / "out", []
    falling_silent(monkeypatch, lambda: not left or left.pop())

    def trainer(config, folder, **options):
        left[:] = [False, False]
        return stub(config, folder, **options)

    trials = tune(read_search(config), "s", f"sqlite:///{tmp_path}/s.db", 2, out, trainer=trainer)
    assert [(state_of(trial), len(attempts(trial))) for trial in trials] == [("complete", 1)] * 2
    assert len(stub.lines("epoch 2")) == 2


def test_a_database_that_never_comes_back_is_one_line(tmp_path, config, monkeypatch, capfd):
    monkeypatch.setattr(study_module, "PATIENCE", 1.0)
    stub, out, gone = Stub(tmp_path / "log", 0.0), tmp_path / "out", []
    falling_silent(monkeypatch, lambda: not gone)

    def trainer(config, folder, **options):
        gone.append(True)
        return stub(config, folder, **options)

    url = f"sqlite:///{tmp_path}/s.db"
    with pytest.raises(
        InputError, match=r"s\.db: failed .*terminating connection\); start the command again"
    ) as caught:
        tune(read_search(config), "s", url, 2, out, trainer=trainer, alive=1)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err
    # Started again, it goes on.
    gone.clear()
    assert len(tune(read_search(config), "s", url, 2, tmp_path / "again", trainer=stub)) >= 2


def test_a_server_that_restarts(tmp_path, config):
    if (why := missing_postgres()) is not None:
        pytest.skip(why)
    stub = Stub(tmp_path / "log", 0.0)
    with postgres() as url:

        def trainer(config, folder, **options):
            if not stub.lines():
                url.stop()
                threading.Timer(1.0, url.start).start()
            return stub(config, folder, **options)

        trials = tune(read_search(config), "s", url, 2, tmp_path / "out", trainer=trainer)
    assert [(state_of(trial), len(attempts(trial))) for trial in trials] == [("complete", 1)] * 2


def test_another_configuration_is_refused(tmp_path, config):
    url, stub, out = f"journal:{tmp_path}/journal", Stub(tmp_path / "log", 0.0), tmp_path / "out"
    tune(read_search(config), "s", url, 1, out, trainer=stub)
    with pytest.raises(InputError, match=r"begun with another configuration \(study was 's', is 't'\)"):
        tune(read_search(config), "t", url, 1, out, trainer=stub)
    config.write_text(SEARCH + "seed: 5\n", encoding="utf-8")
    with pytest.raises(InputError, match="begun with another configuration \\(seed differs\\)"):
        tune(read_search(config), "s", url, 1, out, trainer=stub)
    optuna.create_study(study_name="foreign", storage=open_storage(url)).ask()
    with pytest.raises(InputError, match="not begun by negsample tune"):
        tune(read_search(config), "foreign", url, 1, tmp_path / "x", trainer=stub)
