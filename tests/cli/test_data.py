"""``dpcml data`` as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcml.cli import app

Run = Callable[..., "subprocess.CompletedProcess[str]"]
NOBODY = "http://nobody.invalid:9"  # a proxy whose name never resolves: no way out to the net
LIKES = "".join(f"{user},{item},{1 + (user + item) % 5}\n" for user in range(6) for item in range(8))
ITEMS = "id,title,genres\n" + "".join(
    f"{item},Film {item},{'Horror|War' if item % 2 else 'Comedy'}\n" for item in range(8)
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with a few files, without net and without other data."""
    (tmp_path / "likes.csv").write_text(f"user,item,stars\n{LIKES}")
    (tmp_path / "films.csv").write_text(ITEMS)
    (tmp_path / "data" / "gowalla").mkdir(parents=True)
    (tmp_path / "data" / "gowalla" / "train.txt").write_text("0 1 2\n1 2\n")
    (tmp_path / "data" / "gowalla" / "test.txt").write_text("0 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("DPCML_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("http_proxy", NOBODY)
    monkeypatch.setenv("https_proxy", NOBODY)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Return what runs ``dpcml`` in that folder, in a process of its own."""

    def dpcml(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dpcml", *arguments]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **changes}
        return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8")

    return dpcml


def test_list_says_what_is_where(run: Run) -> None:
    done = run("data", "list")
    assert done.returncode == 0
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert {"ml-100k", "ml-1m", "ml-10m", "steam-200k", "citeulike-t", "gowalla"} <= rows.keys()
    assert "DPCML_DATA" in rows["gowalla"]
    assert "not here" in rows["ml-1m"]
    assert "575,271" in rows["ml-1m"]
    found = json.loads(run("data", "list", "--json").stdout)
    assert found["gowalla"]["found_in"] == "DPCML_DATA"
    assert found["ml-1m"]["folder"] is None


def test_fetch_of_a_set_that_is_here_prints_its_folder(run: Run, tmp_path: Path) -> None:
    done = run("data", "fetch", "gowalla")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'data' / 'gowalla'}\n")


def test_describe_prints_one_json_object(run: Run) -> None:
    done = run("data", "describe", "likes.csv", "--json", "--min-rating", "4", "--min-user-interactions", "2")
    assert done.returncode == 0
    figures = json.loads(done.stdout)
    assert {"users", "items", "item_id_space", "positives", "density_percent"} <= figures.keys()
    positives = sum(int(line.split(",")[2]) >= 4 for line in LIKES.splitlines())
    assert (figures["users"], figures["items"], figures["positives"]) == (6, 8, positives)
    assert figures["density_percent"] == pytest.approx(100 * positives / 48)


def test_the_old_name_of_an_option_works_with_a_warning(run: Run) -> None:
    done = run("data", "describe", "likes.csv", "--json", "--min-user", "2")
    assert done.returncode == 0
    assert json.loads(done.stdout)["users"] == 6
    assert "min_user is deprecated, use min_user_interactions" in done.stderr


def test_describe_takes_the_word_of_the_user_on_headers(run: Run, folder: Path) -> None:
    (folder / "names.csv").write_text("user,item\nann,tea\n")
    figures = {
        option: json.loads(run("data", "describe", "names.csv", option, "--json").stdout)
        for option in ("--header", "--no-header")
    }
    assert [figures[option]["users"] for option in figures] == [1, 2]


def test_describe_shows_figures_and_histograms(run: Run) -> None:
    done = run("data", "describe", "likes.csv", "--items", "films.csv", "--min-rating", "2")
    assert done.returncode == 0, done.stderr
    assert "Preference diversity" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()[-3:]]
    assert [line[0] for line in lines] == ["Comedy", "Horror", "War"]
    lengths = [len(bar) for _, bar, _ in lines]
    assert lengths[0] * int(lines[1][2]) == pytest.approx(lengths[1] * int(lines[0][2]), rel=0.1), "in proportion"
    assert max(map(len, done.stdout.splitlines()[-3:])) <= 100
    assert "guessed:" in done.stdout
    assert "\x1b" not in done.stdout


def test_describe_where_only_ascii_can_be_shown(run: Run) -> None:
    done = run("data", "describe", "likes.csv", "--items", "films.csv", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "----" in done.stdout


def test_describe_takes_names_of_columns(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("x;y;z\na;1;5\nb;1;2\n")
    columns = ["--format", "csv", "--separator", ";", "--user", "x", "--item", "y"]
    done = run("data", "describe", "odd.txt", *columns, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["users"] == 2


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot(run: Run, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    done = run("data", "describe", "likes.csv", "--items", "films.csv", "--plot", f"a.{suffix}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["category_count"] == 3
    assert (tmp_path / f"a.{suffix}").stat().st_size > 1000
    assert f"a.{suffix}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["describe", "ml_1m"], "did you mean 'ml-1m'?"),
        (["describe", "none.csv"], "no file and no data set 'none.csv'"),
        (["describe", "."], "a folder"),
        (["describe", "empty.csv"], "empty.csv"),
        (["describe", "likes.csv", "--user", "who"], "no column 'who'"),
        (["describe", "likes.csv", "--min-user-interactions", "100"], "min_user_interactions=100"),
        (["describe", "likes.csv", "--min-rating", "6"], "min_rating=6"),
        (["describe", "likes.csv", "--min-user-interactions", "0"], "min_user_interactions=0"),
        (["describe", "likes.csv", "--min-rating", "nan"], "min_rating=nan"),
        (["describe", "likes.csv", "--format", "cvs"], "did you mean 'csv'"),
        (["describe", "likes.csv", "--encoding", "klingon"], "klingon"),
        (["describe", "likes.csv", "--items", "none.csv"], "none.csv"),
        (["describe", "likes.csv", "--plot", "a.bmp"], ".png, .svg, .pdf"),
        (["describe", "likes.csv", "--plot", "a.png"], "no attributes"),
        (["describe", "likes.csv", "--items", "films.csv", "--plot", "likes.csv/a.png"], "likes.csv/a.png"),
        (["describe", "bad.csv"], "bad.csv, line 3"),
        (["describe", "gowalla", "--user", "a"], "user='a'"),
        (["describe", "gowalla", "--min-rating", "4"], "min_rating=4"),
        (["describe", "likes.csv", "--min-user-interactions", "many"], "--min-user"),
        (["describe"], "NAME-or-PATH"),
        (["fetch", "ml-2m"], "did you mean"),
        (["describe", "ml-10m"], "ratings.dat"),
        (["fetch", "ml-10m"], "check the connection"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_input(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "bad.csv").write_text("user,item,rating\n1,2,3\n1,3,four\n")
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, ["data", *arguments])
    assert done.exit_code == 2, done.stderr
    assert isinstance(done.exception, SystemExit)
    assert message in done.stderr
    assert done.stdout == ""
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == before


def test_bad_input_of_a_process(run: Run) -> None:
    done = run("data", "describe", "ml_1m")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: no file and no data set 'ml_1m': did you mean 'ml-1m'?\n"


def test_interrupt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpcml.data.datasets.load_dataset", interrupted)
    done = CliRunner().invoke(app, ["data", "describe", "likes.csv"])
    assert done.exit_code == 130
    assert done.stderr == "interrupted\n"


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout.startswith("dpcml ")
    assert "describe" in run("data", "--help").stdout
    assert run("data", "describe", "--help").returncode == 0


def test_help_imports_nothing_heavy() -> None:
    heavy = {"polars", "scipy", "numba", "matplotlib", "torch"}
    code = f"import sys, dpcml.cli; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m dpcml data describe likes.csv --items films.csv | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == ""
