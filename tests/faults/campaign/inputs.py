"""Bad input: values, commands and files that nobody should give, but somebody will.

What must hold: an answer, or an error of ours that says what is wrong; on the command line exit code 0, or 2 and one
line. No other exception, no traceback, no crash, no hang.
"""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import typer

from dpcml import CML, DPCML, MODELS, Interactions, ItemKNN, Popularity, planted, save
from dpcml.cli import app
from dpcml.data.readers import read
from dpcml.utils.errors import DpcmlError
from tests.faults.campaign.cases import Budget, Tally, run_isolated
from tests.faults.campaign.damage import damaged

CASES = 10_400
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 10**6, 2**31, -(2**63), 2**63, 10**400, 0.0, -0.0, 0.5, 1e-300, 1e300,
    float("nan"), float("inf"), -float("inf"), "", " ", "x", "0", "-1", "nan", "ann", "1e9", "\x00", "a\nb", "\ud800",
    "ß" * 300, "--", "../..", "/", "*", "[]", b"x", (), [], {}, set(), [None], [[]], [0, [1]], [1, "a"], ["0", 0],
    {"a": 1}, object, 1j, np.nan, np.int64(3), np.float32(2.5), np.array([]), np.array([[1]]),
    np.array(["a", None], dtype=object), np.zeros(3), np.datetime64("2020-01-01"), range(3), lambda: 1,
)  # fmt: skip
WORDS = (
    "", " ", "0", "-1", "1", "2", "1e9", "nan", "inf", "-inf", "x", "1.5", "true", "None", "[]", "{}", "a=b", "=",
    "k=", "=1", "k=0", "k=nan", "epochs=-1", "dim=1e99", "dim=999999999999", "margin='", "learning_rate=inf",
    "99999999999999999999", "likes.csv", "model", "nowhere", "/", ".", "..", "/dev/null", "/dev/full",
    "/proc/self/mem", "a\nb", "\x1b[31m", "ß", "\udc80", "user_id", "item_id", "title", "P@3", "P@0", "P@-1", "XX@3",
    ",", "3,3", "\\t", "||", "utf-16", "latin-1", "csv", "ann", "category=Western", "category=", "title=the",
    "--help", "--", "-", "%s", "$HOME", "~", "x" * 5000,
)  # fmt: skip


def run_inputs(folder: Path, budget: Budget) -> Tally:
    """Give bad input of all kinds and count what does not hold."""
    return run_isolated(attempt, budget.cases(CASES), folder, budget)


def attempt(folder: Path, rng: np.random.Generator) -> tuple[str, str | None]:
    """Give one bad input."""
    warnings.simplefilter("ignore")
    kind = str(rng.choice(list(SHARES), p=list(SHARES.values())))
    return kind, KINDS[kind](folder, rng)


def any_of(values: Any, rng: np.random.Generator) -> Any:
    """Return one of some values, as it is."""
    return values[int(rng.integers(len(values)))]


def tried(what: str, call: Any) -> str | None:
    """Return what is wrong with how a call ends, if anything is."""
    try:
        call()
    except DpcmlError as error:
        return None if str(error).strip() else f"{what}: an error without words"
    except Exception as error:
        return f"{what[:300]}: {type(error).__name__}: {error}"[:500]
    return None


@cache
def made(folder: Path) -> dict[str, Any]:
    """Make the files and models that commands and requests are about."""
    world = planted(40, 30, seed=1)
    world.write_csv(folder / "likes.csv")
    settings = {"dim": 8, "epochs": 1, "n_candidates": 3}
    models = {"dpcml": DPCML(**settings), "cml": CML(**settings), "itemknn": ItemKNN(k=3), "popularity": Popularity()}
    for model in models.values():
        model.fit(world.data)
    save(models["dpcml"], folder / "model")
    (folder / "users.txt").write_text("1\n2\n")
    return models


def bad_words(rng: np.random.Generator) -> list[str]:
    """Return a command of which some words were replaced, added or left out."""
    words = list(any_of(COMMANDS, rng))
    options = [*any_of(COMMANDS, rng)[1:], *OPTIONS]
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(1, len(words) + 1))
        way = rng.integers(4)
        if way == 0 and place < len(words):
            words[place] = any_of(WORDS, rng)
        elif way == 1:
            words[place:place] = [any_of(options, rng), any_of(WORDS, rng)]
        elif way == 2 and place < len(words):
            del words[place]
        else:
            words.insert(place, any_of((*WORDS, *options), rng))
    return words


def ended(words: list[str], code: Any, errors: str) -> str | None:
    """Return what is wrong with how a command ended, if anything is."""
    if code not in (0, 2):
        return f"{words}: exit code {code}: {errors}"[:400]
    said = [line for line in errors.splitlines() if line.startswith("error: ")]
    helped = "Usage: " in errors  # for a command without words
    if code == 2 and not helped and len(said) != 1:
        return f"{words}: exit code 2 with {len(said)} lines: {errors}"[:400]
    return f"{words}: a traceback" if "Traceback" in errors else None


@cache
def command_line() -> Any:
    """Return all commands; making them takes longer than most cases."""
    return typer.main.get_command(app)


def bad_command(folder: Path, rng: np.random.Generator) -> str | None:
    """Run a bad command in this process, which has everything loaded."""
    made(folder)
    words, out, err = bad_words(rng), io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            command_line()(words, prog_name="dpcml")
        code: Any = 0
    except SystemExit as stop:
        code = stop.code
    except BaseException as error:
        return f"{words}: {type(error).__name__}: {error}"[:400]
    return ended(words, code, err.getvalue())


def bad_process(folder: Path, rng: np.random.Generator) -> str | None:
    """Run a bad command in a process of its own, as a shell does."""
    made(folder)
    words = [word for word in bad_words(rng) if "\x00" not in word]  # the system takes none
    command = [sys.executable, "-m", "dpcml", *words]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return ended(words, done.returncode, done.stderr.decode(errors="replace"))


def bad_parameters(folder: Path, rng: np.random.Generator) -> str | None:
    """Make a model with values that its parameters cannot have."""
    kind = MODELS[any_of(sorted(MODELS), rng)]
    names = list(kind().get_params()) or ["n"]
    given = {any_of(names, rng): any_of(VALUES, rng) for _ in range(int(rng.integers(1, 3)))}
    return tried(f"{kind.__name__}({given})", lambda: kind(**given).get_params()) if names != ["n"] else None


def bad_request(folder: Path, rng: np.random.Generator) -> str | None:
    """Ask a model for what there is not."""
    name, model = any_of(list(made(folder).items()), rng)
    method, options = any_of(REQUESTS, rng)
    if not hasattr(model, method):
        return None
    asked = any_of((*VALUES, 3, [1, 2]), rng)
    given = {any_of(options, rng): any_of(VALUES, rng) for _ in range(int(rng.integers(0, 3)))} if options else {}
    return tried(f"{name}.{method}({asked!r}, {given})", lambda: getattr(model, method)(asked, **given))


def bad_file(folder: Path, rng: np.random.Generator) -> str | None:
    """Read a file that is damaged, empty, or something else."""
    made(folder)
    suffix = any_of([".csv", ".tsv", ".txt", ".dat", ".parquet", ".json", "", ".gz"], rng)
    content = (folder / "likes.csv").read_bytes()[: int(rng.integers(1, 3000))]
    if suffix == ".parquet":
        content = parquet(folder)
    if suffix == ".tsv":
        content = content.replace(b",", b"\t")
    content = rng.bytes(int(rng.integers(0, 500))) if rng.random() < 0.2 else damaged(content, rng)
    file = folder / f"damaged{suffix}"
    file.write_bytes(content)
    given = {any_of(READING, rng): any_of(VALUES, rng) for _ in range(int(rng.integers(0, 3)))}
    return tried(f"read({content[:60]!r}..., {suffix}, {given})", lambda: read(file, **given))


@cache
def parquet(folder: Path) -> bytes:
    """Return a Parquet file."""
    import polars as pl

    pl.read_csv(folder / "likes.csv").write_parquet(folder / "likes.parquet")
    return (folder / "likes.parquet").read_bytes()


def bad_arrays(folder: Path, rng: np.random.Generator) -> str | None:
    """Make interactions of arrays that do not fit, and train on what is taken."""
    size = rng.integers(0, 6, 2)
    matrix = rng.choice([0, 1, 2, -1, np.nan, np.inf, 1e300], size) if rng.random() < 0.5 else any_of(VALUES, rng)
    if rng.random() < 0.3:
        matrix = sp.csr_array(np.asarray(rng.integers(0, 2, size), dtype=float))
        if len(matrix.indices):
            matrix.indices[int(rng.integers(len(matrix.indices)))] = any_of([-1, 10**6, 2**30], rng)
    options, values = ("user_ids", "item_ids", "min_rating", "items"), (*VALUES, [3, 1, 2], ["b", "a"])
    given = {any_of(options, rng): any_of(values, rng) for _ in range(int(rng.integers(0, 3)))}

    def train() -> None:
        data = Interactions.from_csr(matrix, **given)
        Popularity().fit(data).recommend(data.user_ids[:2], n=2)

    return tried(f"from_csr({matrix!r}, {given})", train)


SHARES = {
    "command line": 0.2, "processes": 0.01, "model parameters": 0.2, "requests to a model": 0.2, "data files": 0.25,
    "arrays": 0.14,
}  # fmt: skip
KINDS = {
    "command line": bad_command,
    "processes": bad_process,
    "model parameters": bad_parameters,
    "requests to a model": bad_request,
    "data files": bad_file,
    "arrays": bad_arrays,
}
COMMANDS = (
    ("data", "describe", "likes.csv"),
    ("data", "list", "--json"),
    ("data", "ingest", "likes.csv", "--out", "shards", "--shard-rows", "200"),
    ("train", "--data", "likes.csv", "--model", "itemknn", "--out", "trained", "--quiet"),
    ("train", "--data", "likes.csv", "--model", "cml", "--set", "epochs=1", "--set", "dim=8", "--out", "trained"),
    ("evaluate", "model", "--k", "3", "--json"),
    ("recommend", "model", "--user", "1", "-n", "3", "--explain", "--mix", "0.5"),
    ("recommend", "model", "--history", "1,2,3", "--json", "--where", "category=Western"),
    ("recommend", "model", "--users", "users.txt", "--out", "lists.csv"),
    ("similar", "model", "--item", "1", "-n", "3"),
    ("interests", "model", "--user", "1", "--json"),
    ("bound", "model", "--json"),
    ("export", "model", "--to", "npy", "--out", "exported"),
    ("update", "model", "--feedback", "journal", "--out", "updated"),
    ("doctor", "--json"),
    ("reproduce", "list"),
)
OPTIONS = (
    "--user", "--item", "--rating", "--time", "--min-rating", "--min-user-interactions", "--core",
    "--text-ids", "--format", "--separator", "--header", "--no-header", "--encoding", "--items", "--json", "--set",
    "--config", "--seed", "--threads",
)  # fmt: skip
LISTS = ("n", "exclude_seen", "items", "where", "exclude", "mix", "mix_by", "explain", "on_unknown", "as_frame")
REQUESTS = (
    ("recommend", LISTS), ("recommend_new", LISTS), ("similar_items", ("n",)), ("similar_users", ("n",)),
    ("score", ()), ("score_new", ()), ("interests", ()), ("interests_new", ()), ("fold_in", ()),
)  # fmt: skip
READING = (
    "user", "item", "rating", "time", "min_rating", "min_user_interactions", "min_item_interactions", "core",
    "text_ids", "format", "separator", "header", "encoding", "items",
)  # fmt: skip
