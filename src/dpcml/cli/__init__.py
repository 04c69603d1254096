"""The command line: one file per verb, which parses options and prints results."""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from dpcml.cli import data
from dpcml.cli.bound import bound
from dpcml.cli.compare import compare
from dpcml.cli.demo import demo
from dpcml.cli.doctor import doctor
from dpcml.cli.evaluate import evaluate
from dpcml.cli.export import export
from dpcml.cli.recommend import interests, recommend, similar
from dpcml.cli.reproduce import reproduce
from dpcml.cli.serve import serve
from dpcml.cli.train import train
from dpcml.cli.tune import tune
from dpcml.cli.update import update
from dpcml.utils.errors import DpcmlError, ParameterError
from dpcml.utils.files import no_room
from dpcml.utils.text import printable

USAGE_ERROR: Any = typer.BadParameter.__base__  # Typer has no name for it that stays


class Commands(TyperGroup):
    """All verbs; an error that a user can act on becomes one line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the verb."""
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            raise _wrong_usage(error) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a verb: exit code 2 for bad input, 130 for Ctrl-C, silence for a closed pipe."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except USAGE_ERROR as error:
            raise _wrong_usage(error) from None
        except DpcmlError as error:
            typer.echo(f"error: {printable(str(error))}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None
        except OSError as error:
            raise typer.Exit(_output_failed(error)) from None


def _wrong_usage(error: Any) -> Exception:
    """Print an error of the parser as one line, unless it is the help of a command that was given without words."""
    said = error.format_message().strip().replace("Input should be", f"{_refused(error)} should be")
    if said.startswith("Usage:"):
        return error  # type: ignore[no-any-return]
    command = error.ctx.command_path if error.ctx else "dpcml"
    typer.echo(f"error: {printable(said).rstrip('.')}; see '{command} --help'", err=True)
    return typer.Exit(2)


def _refused(error: Any) -> str:
    """Return the value that the parser refused; Typer's message leaves it out where pydantic has checked it."""
    checked = error.__cause__
    return repr(checked.errors()[0]["input"]) if hasattr(checked, "errors") else "the value"


def _output_failed(error: OSError) -> int:
    """Return the exit code for output that could not be written, silent for a closed pipe; raise all other errors."""
    reason = no_room(error)
    if reason is None and not isinstance(error, BrokenPipeError):
        raise error
    _drop_output()
    if reason is None:
        return 1  # the reader of our output has gone
    typer.echo(f"error: {error.filename or 'standard output'}: cannot be written ({reason}); make room", err=True)
    return 2


def _drop_output() -> None:
    """Let the interpreter flush standard output into the null device when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=Commands,
    name="dpcml",
    help="Recommendation for people with more than one interest.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
app.command()(demo)
app.command()(train)
app.command()(evaluate)
app.command()(recommend)
app.command()(similar)
app.command()(interests)
app.command()(tune)
app.command()(compare)
app.command()(bound)
app.command()(reproduce)
app.command()(serve)
app.command()(update)
app.command()(export)
app.command()(doctor)


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Name the command that took the place of 'dpcml bench'; to be removed in the next version."""
    words = " ".join(["python -m benchmarks", *context.args])
    raise ParameterError(f"dpcml bench: benchmarks have left the package; in a checkout, run '{words}'")


def _version(wanted: bool) -> None:
    if wanted:
        from dpcml.utils.packages import version

        typer.echo(f"dpcml {version()}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Recommendation for people with more than one interest."""


def _without_current_folder() -> None:
    """Let Numba work where the current folder has been deleted.

    It imports coverage if that is installed, which asks for the folder, and names files relative to it.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        sys.modules.setdefault("coverage", None)  # type: ignore[arg-type]
        with suppress(DpcmlError, ImportError):
            from numba.core.ir import Loc

            Loc._get_path = lambda self: self.filename  # type: ignore[method-assign]


def _warn_once() -> None:
    """Show a warning as one line, and once: Python forgets what it has shown when Numba compiles."""
    show: Any = warnings.showwarning
    shown: set[str] = set()

    def show_new(message: Warning | str, *where: Any, **more: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            show(message, *where, **more)

    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    warnings.showwarning = show_new


def main() -> None:
    """Run the command line."""
    _without_current_folder()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # print titles that the terminal cannot encode
    gc.set_threshold(100_000, 20, 20)  # compilers allocate much and free little: collecting took a tenth of their time
    _warn_once()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # of --help and --version, which run no verb
            gc.freeze()  # an interpreter that ends need not look for garbage once more: that took a quarter of a second
    except OSError as error:
        sys.exit(_output_failed(error))
