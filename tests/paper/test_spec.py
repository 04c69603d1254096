"""Specs: what is shipped is sound, and what a spec can say is understood."""

import tomllib

import pytest

from dpcml.models import MODELS, create
from dpcml.paper.published import published_figures
from dpcml.paper.runs import MEASURES
from dpcml.paper.spec import FOLDER, _document, parse_spec, read_spec, specs
from dpcml.paper.study_types import STUDY_TYPES
from dpcml.utils.errors import ParameterError

TEXT = """
title = "T"
about = "A"
data = ["a", "b"]
seeds = 4

[quick]
seeds = 1
parameters = { epochs = 2 }
grid = { k = [7] }

[[row]]
label = "neighbours {k}"
model = "itemknn"
series = "neighbours"
grid = { k = [5, 9] }
parameters = { shrink = 3.0 }
on.b = { shrink = 0.0 }

[[row]]
label = "vectors"
model = "dpcml2"
skip = ["b"]
seeds = 2
parameters = { diversity = [0.1, "none"] }
"""


TEXT_LIKE = """
title = "T"
about = "A"
data = ["steam-200k"]
[[row]]
label = "none"
like = "{label}"
parameters = {{ diversity_weight = 0.0 }}
"""


def test_rows_are_made_per_set_and_per_point():
    spec = parse_spec("t", TEXT)
    assert [(row.data, row.label) for row in spec.rows] == [
        ("a", "neighbours 5"), ("a", "neighbours 9"), ("a", "vectors"), ("b", "neighbours 5"), ("b", "neighbours 9"),
    ]  # fmt: skip
    assert spec.rows[0].parameters == {"shrink": 3.0, "k": 5}
    assert spec.rows[4].parameters == {"shrink": 0.0, "k": 9}, "a set has settings of its own"
    assert spec.rows[4].point == {"k": 9}
    assert spec.rows[2].parameters["diversity"] == (0.1, None)
    assert spec.seeds_of(spec.rows[2]) == 2
    assert spec.seeds_of(spec.rows[0]) == 4


def test_quick_changes_what_a_model_has():
    spec = parse_spec("t", TEXT, quick=True)
    assert [row.label for row in spec.rows] == ["neighbours 7", "vectors", "neighbours 7"]
    assert spec.rows[1].parameters == {"diversity": (0.1, None), "epochs": 2}
    assert "epochs" not in spec.rows[0].parameters, "neighbours are not trained in epochs"
    assert spec.seeds_of(spec.rows[1]) == 1


def test_other_data_takes_the_general_settings():
    spec = parse_spec("t", TEXT).on(["c"])
    assert [row.data for row in spec.rows] == ["c"] * 3
    assert spec.rows[0].parameters == {"shrink": 3.0, "k": 5}


def test_a_row_can_share_model_and_settings_with_one_of_the_overall_table():
    text = TEXT_LIKE.format(label="DPCML2")
    (row,) = parse_spec("t", text).rows
    (shared,) = (one for one in read_spec("overall").rows if (one.label, one.data) == ("DPCML2", "steam-200k"))
    assert row.model == shared.model
    assert row.parameters == {**shared.parameters, "diversity_weight": 0.0}
    with pytest.raises(ParameterError, match=r"study 't': no row 'DPCML3' in overall: did you mean"):
        _ = parse_spec("t", TEXT_LIKE.format(label="DPCML3")).rows


@pytest.mark.parametrize("line", ["protocoll = 'text'", "[[row]]\nlabel = 'x'\nmodle = 'ease'"])
def test_unknown_keys_are_named(line):
    head, rows = TEXT.split("[quick]")
    text = f"{head}{line}\n[quick]{rows}" if "row" not in line else TEXT + line
    with pytest.raises(ParameterError, match=r"unknown key '(protocoll|modle)': did you mean"):
        parse_spec("t", text)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", specs())
def test_every_spec_is_sound(name, quick):
    spec = read_spec(name, quick=quick)
    assert spec.study_type in STUDY_TYPES
    assert all(measure in MEASURES for measure in spec.measures)
    labels = [(row.data, row.label) for row in spec.rows]
    assert len(labels) == len(set(labels))
    for row in spec.rows:
        create(row.model, **row.parameters)
        assert row.paper is None or published_figures(row.data, row.paper, spec.published)
    if not quick:
        known = {row.label for row in spec.rows}
        assert all({claim.better, *claim.worse} <= known for claim in spec.claims), "a claim must name rows"


def test_every_table_and_figure_of_the_paper_has_a_spec():
    types = {read_spec(name).study_type for name in specs() if read_spec(name).folder == FOLDER}
    assert types == set(STUDY_TYPES)
    methods = {row.paper for row in read_spec("overall").rows if row.data == "steam-200k"}
    assert len(methods - {None}) == 16


def test_an_unknown_study_is_bad_input():
    with pytest.raises(ParameterError, match="did you mean 'overall'"):
        read_spec("overal")


def test_a_file_is_parsed_once_and_no_model_is_constructed(monkeypatch):
    """Whatever is done with a study afterwards: other data, rows, the rows that share settings with overall."""
    parsed = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or loads(text))
    for model in MODELS:
        monkeypatch.setattr(MODELS[model], "__init__", lambda *_, **__: pytest.fail("a model was constructed"))
    read_spec.cache_clear()
    _document.cache_clear()
    for name in specs():
        for quick in (False, True):
            assert read_spec(name, quick).on(["likes.csv"]).rows is not None
    assert len(parsed) == len(specs())
