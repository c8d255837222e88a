"""The command line: the app, and which exit code an error gets. Each verb is a module of ``negsample.commands``."""

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

import negsample
from negsample.commands.compare import compare, corpus, estimate
from negsample.commands.correlate import correlate, fit
from negsample.commands.explain import explain, serve
from negsample.commands.info import cache, info, publish
from negsample.commands.reinforce import generate_summaries, reinforce
from negsample.commands.score import score, select
from negsample.commands.tables import tables, transfer
from negsample.commands.train import demo, evaluate, generate, train, tune
from negsample.errors import InputError
from negsample.terminal import accept_any_text, say

if TYPE_CHECKING:
    from negsample.processes import Processes

app = typer.Typer(
    name="negsample",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for verb in (
    *(generate, train, evaluate, score, select, corpus, explain, correlate, compare, estimate, serve, info, cache),
    *(publish, demo, transfer, tune, fit, reinforce, generate_summaries, tables),
):
    app.command()(verb)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"negsample {negsample.__version__}")
        raise typer.Exit


@app.callback()
def negsample_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Train reference-free estimators of summary quality, score with them, and measure their agreement with people."""


_FULL = (
    "No space left",
    "File too large",
    "quota exceeded",
    "PytorchStreamWriter failed",
    "unexpected pos",
    "iostream error",
)


def _fail(message: str, code: int = 2) -> None:
    say(f"negsample: {' '.join(message.split())}", error=True)
    _end(code)


def _end(code: int) -> None:
    """Exit with ``code``, and no other word or code for what standard output has not taken."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        # The interpreter flushes it again when it ends; that goes nowhere instead of complaining.
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
    raise SystemExit(code)


def main(arguments: list[str] | None = None, processes: "Processes | None" = None) -> None:
    """Entry point. Exit codes: 0 done, 2 wrong input (one line on standard error), 130 interrupted,
    141 nobody reads standard output any more.

    ``processes`` share the work where this one is one of several (``accelerate launch -m negsample score``).
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    # Where standard output or error is closed, no file that is opened later may come to stand in its place.
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    accept_any_text()
    # Ended politely, by a kill or with its terminal, a command takes its temporary files with it.
    with contextlib.suppress(ValueError):  # not the main thread
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):  # Windows has no SIGHUP
            if signal.getsignal(number) == signal.SIG_DFL:  # not under nohup
                signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        with processes or contextlib.nullcontext():
            result: Any = app(arguments, standalone_mode=False, obj=processes, prog_name="negsample")
            if result == 130:  # what Typer makes of an interrupt
                raise KeyboardInterrupt
        # What is still held back is written here, where it is seen that nobody reads it any more.
        if sys.stdout is not None:
            sys.stdout.flush()
    except InputError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except typer.Exit as error:
        raise SystemExit(error.exit_code) from None
    except (BrokenPipeError, SystemExit) as error:
        # Typer makes a silent exit 1 of a broken pipe; one that breaks at the last flush comes as it is.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        # The reader (head, less) has seen enough: without a word, and with the shell's own code for it. Not 0, since what
        # was still to be done (``train … | head``) is not done.
        _end(141)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}; check the disk and the permissions")
    except Exception as error:
        # safetensors and torch have their own words for a disk that is full.
        if any(sign in str(error) for sign in _FULL):
            _fail(
                "the disk is full, or a file may not grow; make room, and go on with --resume where the command has it"
            )
        # Typer's own complaints about arguments; which classes they are differs between its versions.
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            say(error)
            raise SystemExit(0) from None
        context = getattr(error, "ctx", None)
        told = error.format_message().rstrip(".")
        _fail(
            f"{told}{'' if told.endswith('?') else '.'} See '{context.command_path if context else 'negsample'} --help'."
        )
    else:
        raise SystemExit(result if isinstance(result, int) else 0)


if __name__ == "__main__":
    main()
