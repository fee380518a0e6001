"""The command line: parse, call, print, exit. The only place that catches SolkitError."""

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from solkit import __version__
from solkit.cli import (
    ceilings,
    compare,
    doctor,
    gpus,
    listing,
    new,
    plan,
    report,
    roofline,
    run,
    trend,
)
from solkit.cli.console import VOICE, abandon, complain, open_closed_streams, show
from solkit.errors import SolkitError

INTERRUPTED = 130
UNEXPECTED = 2
# Options of the program: they may stand before or after the command.
_EVERYWHERE = ("--quiet", "--debug")


class _Group(TyperGroup):
    """Turns what a command raises into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # click's own types
        """Run the command."""
        debug = bool(ctx.params.get("debug"))
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except SolkitError as error:
            if debug:
                traceback.print_exc()
            complain(error.message, error.remedy)
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:  # `solkit list | head`: the reader has what it wants
            abandon(sys.stdout)
            raise typer.Exit(0) from error
        except (OSError, RecursionError, MemoryError) as error:
            raise _unexpected(error, debug=debug) from error
        except Exception as error:
            # click's own exceptions carry an exit code: usage errors and Exit pass through
            if hasattr(error, "exit_code"):
                raise
            raise _unexpected(error, debug=debug) from error
        return answer


def _unexpected(error: Exception, *, debug: bool) -> typer.Exit:
    if debug:
        traceback.print_exc()
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    complain(said, "" if debug else "run again with --debug for the details")
    return typer.Exit(UNEXPECTED)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.command)
app.command("plan")(plan.command)
app.command("report")(report.command)
app.command("compare")(compare.command)
app.command("trend")(trend.command)
app.command("roofline")(roofline.command)
app.command("ceilings")(ceilings.command)
app.command("list")(listing.command)
app.add_typer(gpus.app, name="gpus")
app.add_typer(new.app, name="new")
app.command("doctor")(doctor.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        show(f"solkit {__version__}")
        raise typer.Exit


@app.callback()
def program(
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Say nothing but data and errors.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """How near a GPU kernel is to the speed of light of its card, for every shape that matters."""
    del debug, version  # the group reads the one, its callback has dealt with the other
    VOICE.quiet = quiet


def arranged(arguments: Sequence[str]) -> list[str]:
    """Move the options of the program to the front, so that they may stand after the command."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    front = [word for word in arguments[:end] if word in _EVERYWHERE]
    rest = [word for word in arguments[:end] if word not in _EVERYWHERE]
    return [*front, *rest, *arguments[end:]]


def _interrupt_when_ended() -> None:
    """Let SIGTERM and a closed terminal end a run as Ctrl-C does: with a report."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP; under nohup it stays ignored
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)


def main() -> None:
    """Run the program."""
    open_closed_streams()
    _interrupt_when_ended()
    try:
        app(args=arranged(sys.argv[1:]), prog_name="solkit")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
