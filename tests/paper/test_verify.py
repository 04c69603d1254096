import json

import polars as pl
import pytest
from typer.testing import CliRunner

from dpcml.cli import app
from dpcml.data.synthetic import planted
from dpcml.paper.studies import reproduce_one
from dpcml.paper.verify import verify
from dpcml.utils.errors import DataError


@pytest.fixture
def folder(tmp_path):
    planted(120, 80, seed=1).write_csv(tmp_path / "world.csv")
    given = {"data": [str(tmp_path / "world.csv")], "out": tmp_path}
    reproduce_one("overall", labels=["popularity", "itemKNN"], seeds=2, **given)
    reproduce_one("datasets", **given)
    return tmp_path


def invoke(folder, *words):
    return CliRunner().invoke(app, ["reproduce", "verify", "--out", str(folder), *words])


def test_figures_come_out_again(folder):
    said: list[str] = []
    found = verify(1000, out=folder, say=said.append)
    assert found.cells == found.identical == 4 * 5 + 4, "two rows, two seeds, five metrics; four counts"
    assert found.outdated == 0
    assert verify(5, out=folder).cells == 5
    assert len({line.split("]")[1] for line in said}) == found.cells


def test_a_seed_decides_the_draw(folder):
    def drawn(seed):
        said: list[str] = []
        verify(6, seed=seed, out=folder, say=said.append)
        return said

    assert drawn(1) == drawn(1) != drawn(2)


def test_what_differs_is_named_and_the_exit_code_is_one(folder):
    file = folder / "overall.csv"
    done = pl.read_csv(file, infer_schema_length=None)
    wrong = (pl.col("label") == "itemKNN") & (pl.col("seed") == 1)
    done.with_columns(pl.when(wrong).then(0.5).otherwise(pl.col("MAP")).alias("MAP")).write_csv(file)
    result = invoke(folder, "--cells", "1000", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["cells"] - found["identical"] == 1
    (one,) = found["different"]
    assert (one["study"], one["row"], one["seed"], one["metric"]) == ("overall", "itemKNN", 1, "MAP")
    assert one["file"] == 0.5
    assert one["now"] == pytest.approx(done.filter(wrong)["MAP"][0])
    assert "itemKNN, seed 1, MAP: 0.5 in the file, now" in invoke(folder, "--cells", "1000").stdout


def test_cells_of_an_earlier_version_count_as_outdated(folder):
    file = folder / "overall.csv"
    pl.read_csv(file, infer_schema_length=None).drop("fingerprint").write_csv(file)
    result = invoke(folder, "--cells", "1000", "--json")
    assert result.exit_code == 0, "their figures are the same"
    found = json.loads(result.stdout)
    assert found["outdated"] == 20
    assert found["different"] == []


def test_only_some_data(folder):
    with pytest.raises(DataError, match="no figures that can be run again"):
        verify(3, data=["ml-1m"], out=folder)


def test_options_of_verify_are_refused_elsewhere():
    result = CliRunner().invoke(app, ["reproduce", "overall", "--cells", "3"])
    assert result.exit_code == 2
    assert "--cells: is an option of 'dpcml reproduce verify' only" in result.stderr
