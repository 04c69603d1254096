import polars as pl

from dpcml.paper.document import markdown
from dpcml.paper.spec import Spec
from dpcml.paper.study_types import StudyResults
from dpcml.paper.summary import coverage, several_or_one


def results(figures):
    entries = tuple({"label": label, "model": "popularity"} for label in figures)
    rows = [
        {"data": "steam-200k", "label": label, "parameters": "{}", "seed": seed, "NDCG@5": value}
        for label, values in figures.items()
        for seed, value in enumerate(values)
    ]
    return StudyResults(Spec("overall", "T", "A", entries=entries, data=("steam-200k",)), pl.DataFrame(rows))


def test_one_line_per_set_and_row_with_intervals_over_seeds():
    found = several_or_one(
        results({"DPCML2": [0.30, 0.32, 0.31], "HarS": [0.28, 0.30, 0.29], "EASE": [0.33, 0.30, 0.31], "iALS": [0.25]})
    )
    text = markdown(found)
    (line,) = (one for one in text.splitlines() if one.startswith("| Steam-200k: DPCML2 "))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1] == "**+2.00 [+2.00, +2.00]**"
    assert cells[2] == "-", "no such row"
    assert cells[3].startswith("-0.33 [-")
    assert cells[4] == "+5.00, one seed"


def test_nothing_without_rows_to_compare():
    assert several_or_one(results({"popularity": [0.1]})) == []


def test_the_coverage_names_sets_seeds_and_cells_below_the_paper():
    found = markdown(coverage([results({"DPCML2": [0.3, 0.32], "popularity": [0.1]})]))
    assert "| T | Steam-200k | 1 to 2 | - |" in found, "rows without a line of the paper"
    entries = ({"label": "DPCML2", "model": "popularity", "paper": "DPCML2"},)
    study = Spec("overall", "T", "A", entries=entries, data=("steam-200k",), metrics=("P@3", "MRR"))
    run = {"data": "steam-200k", "label": "DPCML2", "parameters": "{}", "seed": 0, "P@3": 0.2, "MRR": 0.99}
    assert "| T | Steam-200k | 1 | 1 of 2 |" in markdown(coverage([StudyResults(study, pl.DataFrame([run]))]))
