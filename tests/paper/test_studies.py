"""Studies from start to report, each kind on a small planted world."""

import re

import polars as pl
import pytest

from dpcml.data.synthetic import planted
from dpcml.paper.document import markdown
from dpcml.paper.published import METRICS
from dpcml.paper.runs import DatasetCache, run_jobs
from dpcml.paper.spec import Spec, parse_spec
from dpcml.paper.studies import reproduce_one, study_blocks, study_titles, write_study
from dpcml.paper.study_types import STUDY_TYPES, StudyResults
from dpcml.utils.errors import DataError

HEAD = 'title = "A study"\nabout = "About."\nprotocol = "text"\nseeds = 2\n'
SMALL = "{ n_vectors = 2, dim = 8, epochs = 2, n_candidates = 3, validate_every = 2 }"
ROW = f'[[row]]\nmodel = "dpcml2"\nseries = "DPCML2"\nparameters = {SMALL}\n'
TEXTS = {
    "table": HEAD
    + f"""
[[row]]
label = "several"
model = "dpcml2"
parameters = {SMALL}
[[row]]
label = "popular"
model = "popularity"
[[claim]]
text = "several vectors win"
better = "several"
worse = ["popular"]
""",
    "sweep": HEAD
    + 'options = { parameter = "n_vectors", axis = "C", shown = ["P@3", "MAP"] }\n'
    + ROW
    + 'label = "C {n_vectors}"\ngrid = { n_vectors = [1, 2] }',
    "surface": HEAD
    + 'options = { metric = "MAP" }\n'
    + ROW
    + 'label = "{diversity}"\ngrid.diversity = [[0.0, 0.1], [0.0, 0.5], [0.2, 0.5]]\n'
    + ROW.replace("epochs = 2", "diversity_weight = 0.0, epochs = 2")
    + 'label = "free"',
    "generalisation": HEAD
    + 'measures = ["accuracy", "generalisation"]\n'
    + ROW
    + 'label = "C {n_vectors}"\ngrid = { n_vectors = [1, 2] }',
    "groups": HEAD
    + 'measures = ["accuracy", "categories"]\n[[claim]]\ntext = "a wins"\nbetter = "a"\nworse = ["b"]\n'
    + '[[row]]\nlabel = "a"\nmodel = "itemknn"\n[[row]]\nlabel = "b"\nmodel = "popularity"',
    "datasets": HEAD,
    "histogram": HEAD,
    "categories": HEAD,
    "timing": HEAD + 'options = { methods = ["popularity", "bpr", "ials"], epochs = 1, repeats = 1 }',
}
SAID = {
    "table": "The paper says that several vectors win. In our runs this **",
    "sweep": "P@3 is highest at",
    "surface": "of 3 pairs of bounds, against no control",
    "generalisation": "have a lower training loss than one. In our runs this **",
    "groups": "*a* against *b*, over 2 seeds: of ",
    "datasets": "150 | ",
    "histogram": "mean preference diversity 0.",
    "categories": "4 categories",
    "timing": "| popularity | 0.0",
}
DRAWN = set(TEXTS) - {"table", "datasets"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A world in a file, with the categories of its items in another."""
    folder = tmp_path_factory.mktemp("world")
    planted(150, 90, positives=15, n_categories=4, seed=1).write_csv(folder / "world.csv")
    return str(folder / "world.csv")


@pytest.fixture(scope="module")
def datasets():
    """Data with categories, whatever it is called: a file of positives has none."""

    class Planted(DatasetCache):
        def __call__(self, name):
            return planted(150, 90, positives=15, n_categories=4, seed=1).data

    return Planted()


@pytest.mark.parametrize("study_type", TEXTS)
def test_each_type_from_runs_to_a_report(study_type, datasets, tmp_path):
    spec = parse_spec("study", f'study_type = "{study_type}"\ndata = ["planted"]\n' + TEXTS[study_type])
    store = run_jobs(STUDY_TYPES[study_type].jobs(spec, datasets), tmp_path / "study.csv")
    assert not store.failed.height, store.failed["reason"].to_list()
    text = write_study(spec, tmp_path)
    assert text.startswith("# A study\n\nAbout.\n")
    assert SAID[study_type] in text
    assert "dpcml 0." in text
    assert store.done["version"].null_count() == 0
    pictures = [file.suffix for file in (tmp_path / "figures").glob("*")]
    assert pictures == ([".png"] if study_type in DRAWN else [])
    if study_type == "generalisation":
        shares = re.search(r"C = 2 \| [\d.]+ ± [\d.]+ \| ([\d.]+) ± [\d.]+ \| ([\d.]+) ", text)
        assert shares is not None
        assert min(map(float, shares.groups())) > 1, "both MRR are in percent"
    again: list[str] = []
    run_jobs(STUDY_TYPES[study_type].jobs(spec, datasets), tmp_path / "study.csv", again.append)
    assert again == [], "finished runs are skipped"
    other = TEXTS[study_type].replace("n_candidates = 3", "n_candidates = 4")
    if other != TEXTS[study_type] and study_type != "table":  # which has a row that is as before
        changed = parse_spec("study", f'study_type = "{study_type}"\ndata = ["planted"]\n' + other)
        assert "No run of this study is done with its settings of today." in write_study(changed, tmp_path)


def test_a_set_that_is_not_here_is_measured_by_its_shape(tmp_path, monkeypatch):
    monkeypatch.setenv("DPCML_DATA", str(tmp_path))
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path))
    setting = "setting = { n_vectors = 2, dim = 8, n_candidates = 3 }"
    shape = f"stand_in = {{ users = 90, items = 300, positives = 1350, {setting} }}\n"
    text = f'study_type = "scale"\ndata = ["ml-10m"]\n{HEAD}[options]\n{shape}'
    spec = parse_spec("study", text + '[[row]]\nlabel = "p"\nmodel = "popularity"')
    store = run_jobs(STUDY_TYPES["scale"].jobs(spec, DatasetCache()), tmp_path / "study.csv")
    assert store.done.height == 1, store.failed
    report = write_study(spec, tmp_path)
    assert "These are **not** results on MovieLens-10M" in report
    assert "90 users, 300 items" in report
    assert "P@3" not in report


def test_tables_have_means_and_the_papers_figures():
    entry = {"data": "steam-200k", "label": "ours", "model": "popularity", "paper": "DPCML2"}
    spec = Spec("made", "Made up", "About.", "released", (3, 5), 2, (entry,))
    figures = [{"data": "steam-200k", "label": "ours", "model": "popularity", "parameters": "{}", "seed": seed,
                "version": "1", "protocol": "released", "split": f"hash-{seed}", "seconds": 2.0,
                **dict.fromkeys(METRICS, value)} for seed, value in ((0, 0.30), (1, 0.32))]  # fmt: skip
    text = markdown(study_blocks(StudyResults(spec, pl.DataFrame(figures))))
    assert "| ours | 2 | 31.00 ± 1.41 |" in text
    assert "dpcml 1; `dpcml reproduce made --data steam-200k` does the runs that are missing" in text
    assert "| *the paper's DPCML2* |  | 29.88 |" in text
    assert "| *difference* |  | +1.12 |" in text
    assert "6 of 8 cells are at or above the paper's figures. Below: *ours* (NDCG@3 -0.22, MRR -20.95)." in text
    assert "Protocol `released`" in text
    assert "seed 1: `hash-1`" in text


def test_figures_of_other_settings_are_not_shown():
    entry = {"data": "d", "label": "ours", "model": "itemknn", "parameters": {"k": 3}}
    spec = Spec("made", "Made up", "About.", entries=(entry,))
    old = {"data": "d", "label": "ours", "model": "itemknn", "parameters": '{"k": 2}', "seed": 0, "version": "1",
           "split": "h", "seconds": 1.0, **dict.fromkeys(METRICS, 0.5)}  # fmt: skip
    assert "50.00" not in markdown(study_blocks(StudyResults(spec, pl.DataFrame([old]))))


def test_a_named_study_on_a_file(world, tmp_path):
    text = reproduce_one("datasets", data=[world], out=tmp_path)
    assert "150" in text
    assert "world.csv" in (tmp_path / "report.md").read_text()


def test_titles_come_in_the_order_of_the_report():
    assert next(iter(study_titles())) == "datasets"


def test_the_papers_counts_come_out_of_our_preparation(real_data, tmp_path):
    assert "4 counts are exactly the paper's." in reproduce_one("datasets", quick=True, out=tmp_path)
    assert (tmp_path / "quick" / "report.md").exists()


def test_a_study_of_which_no_run_ends_well_says_why(tmp_path):
    with pytest.raises(DataError, match=r"no run of eta ended well; the first: .*nothing\.csv.*eta\.failures\.csv"):
        reproduce_one("eta", data=[str(tmp_path / "nothing.csv")], seeds=1, quick=True, out=tmp_path)
