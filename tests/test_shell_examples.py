"""Every command in a ``console`` block of README and docs runs, page by page, in a folder with the files it names.

Commands of ``dpcml`` run for real on small data. What would take long, or needs what a test has not, goes through the
parser of its program, so that a command, an option or a value that does not exist fails here too. `PARSED` says which
those are, and why; a program that no rule names is an error.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import benchmarks.__main__
from dpcml import planted
from dpcml.cli import app

ROOT = Path(__file__).parents[1]
# Parsed, not run: a part of the command, and why.
PARSED = {
    "--engine ray": "starts a cluster; tests/scale runs such commands",
    "data fetch": "downloads a data set",
    "reproduce all": "takes hours, with --quick minutes; tests/paper runs studies",
    "reproduce overall": "takes minutes",
    "reproduce search": "takes hours",
    "reproduce verify": "runs studies again",
    "wandb=": "needs an account",
}
# A published data set is stood in for by a file of the same columns; numbers that only take time are smaller.
INSTEAD = {
    "steam-200k": "steam.csv", "describe ml-1m": "describe likes.csv --items items.csv", "--budget 30": "--budget 2",
    "--folds 5": "--folds 2", "--data planted": "--data likes.csv", "localhost:8000": "127.0.0.1:$(cat port)",
}  # fmt: skip
NAMED_ITEMS = [1204]  # an id that pages use beyond the size of the small catalogue


def pages() -> dict[str, list[str]]:
    """Return the commands of each page; what is generated from the parser itself is left out."""
    found = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"```console\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        lines = re.sub(r"\\\n\s*", "", "\n".join(blocks)).splitlines()
        commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        if commands and path.parent.name != "generated":
            found[str(path.relative_to(ROOT))] = commands
    return found


PAGES = pages()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """Files that pages name, and a model: of it, commands of several pages make lists."""
    place = tmp_path_factory.mktemp("shell")
    data = planted(60, 120, seed=1).data
    users, items = ["ann", "bob", *map(str, range(3, 61))], [*range(1, 120), *NAMED_ITEMS]
    likes = pl.DataFrame(
        {"user_id": [users[row] for row in data.rows], "item_id": [items[k] for k in data.indices], "rating": 5}
    )
    kinds = ["|".join(data.items.attributes.of(k)) for k in range(data.n_items)]
    films = pl.DataFrame({"item_id": items, "title": data.items.titles, "category": kinds})
    likes.write_csv(place / "likes.csv")
    likes.write_parquet(place / "ratings.parquet")
    for number in range(2):
        likes[number::2].write_parquet(place / f"likes-{number}.parquet")
    likes.rename({"rating": "plays"}).write_csv(place / "plays.csv")
    likes.rename({"rating": "hours"}).write_csv(place / "steam.csv")
    films.write_csv(place / "items.csv")
    films.write_csv(place / "films.csv")
    new = films.head(5).with_columns(item_id=pl.col("item_id") + 2000, title=pl.col("title") + " again")
    new.write_csv(place / "new.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run(["train", "--data", "likes.csv", "--items", "items.csv", "--out", "runs/first"])
    shutil.copytree(place / "runs" / "first", place / "model")
    return place


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_run(page, prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPCML_THREADS", "1")
    servers: list[subprocess.Popen[bytes]] = []
    try:
        for command in PAGES[page]:
            play(command, servers)
    finally:
        for server in servers:
            server.kill()
            server.wait()


def play(command: str, servers: list[subprocess.Popen[bytes]]) -> None:
    """Run a command, or check that its program would take it."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), command
    elif words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert words[1:3] == ["install", "-e"], command
        assert re.fullmatch(r"\.(\[(.*)\])?", words[3])[2] in {*extras, None}, command
    elif words[:3] == ["python", "-m", "benchmarks"]:  # tests/benchmarks runs them
        parse(benchmarks.__main__.app, words[3:])
    elif words == [".", ".venv/bin/activate"]:
        pass
    elif words == ["dpcml", "--install-completion"]:  # tests/cli/test_completion.py runs it
        assert words[1] in run(["--help"])
    elif words[0] == "dpcml" and any(part in command for part in PARSED):
        parse(app, words[1:])
    elif words[:2] == ["dpcml", "serve"]:
        stop(servers)
        servers.append(serve(words[1:]))
    elif words[0] == "dpcml":
        given = shlex.split(instead(command), comments=True)[1:]
        run([name for word in given for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])])
    elif words[0] in ("curl", "python"):
        answer = shell(instead(command))
        assert words[0] == "python" or '"error"' not in answer, f"{command}: {answer}"
    else:
        raise AssertionError(f"{command!r}: no rule for this program")


def instead(command: str) -> str:
    """Return a command with its stand-ins."""
    for shown, smaller in INSTEAD.items():
        command = command.replace(shown, smaller)
    return command


def run(words: list[str]) -> str:
    """Run a command of ``dpcml`` in this process; return what it prints."""
    done = CliRunner().invoke(app, words, prog_name="dpcml")
    assert done.exit_code == 0, f"dpcml {shlex.join(words)}: {done.output} {done.exception!r}"
    return done.output


def parse(program: typer.Typer, words: list[str]) -> None:
    """Check that a program has a command with these options and values."""
    group = typer.main.get_command(program)
    context = None
    while hasattr(group, "resolve_command"):
        context = group.make_context(group.name, words, parent=context)
        name, group, words = group.resolve_command(context, [*context._protected_args, *context.args])
    group.make_context(name, words, parent=context)


def serve(words: list[str]) -> subprocess.Popen[bytes]:
    """Start a server on a free port, and wait until it answers."""
    log = Path("server.log")
    with log.open("wb") as file:
        server = subprocess.Popen([sys.executable, "-m", "dpcml", *words, "--port", "0"], stdout=file, stderr=file)
    end = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < end:
        if found := re.search(r"http://[\d.]+:(\d+)", log.read_text()):
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/health", timeout=60) as answer:
                assert answer.status == 200
            Path("port").write_text(found[1])
            return server
        time.sleep(0.05)
    server.kill()
    raise AssertionError(f"{words}: {log.read_text()}")


def stop(servers: list[subprocess.Popen[bytes]]) -> None:
    """End the server that runs, as a user would."""
    while servers:
        server = servers.pop()
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


def shell(command: str) -> str:
    """Run a command by the shell; return what it prints."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    "command", ["dpcml nonsense", "dpcml train --nonsense 1", "dpcml data fetch", "dpcml train --engine ray --seed x",
                "make nonsense", "pip install -e '.[nonsense]'", "python -m benchmarks nonsense", "nonsense"]
)  # fmt: skip
def test_a_command_that_does_not_exist_fails(command):
    with pytest.raises((AssertionError, typer.BadParameter.__base__, typer.Exit, SystemExit)):
        play(command, [])


def test_every_rule_is_about_a_command_of_a_page():
    shown = "\n".join(command for commands in PAGES.values() for command in commands)
    assert len(PAGES) > 10
    assert not [part for part in (*PARSED, *INSTEAD) if part not in shown]
