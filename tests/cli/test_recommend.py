import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from dpcml import DPCML, EASE, Interactions, Popularity, load, save
from dpcml.cli import app
from dpcml.data.items import ItemTable
from dpcml.data.synthetic import planted
from dpcml.export import export, write_recommendations
from dpcml.kernels.compilation import kernel_cache_folder
from dpcml.utils.errors import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    data = planted(120, 90, seed=1).data
    save(DPCML(n_vectors=3, dim=8, epochs=5, n_candidates=4).fit(data), place / "dpcml")
    named = Interactions.from_codes(data.rows, data.indices, [f"user {k}" for k in range(120)], data.items)
    save(EASE().fit(named), place / "ease")
    return place


@pytest.fixture
def run(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        verb, model, *rest = map(str, words)
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, [verb, str(folder / model), *rest])

    return call


def test_a_list_for_a_user_in_a_table_and_as_json(run, folder):
    shown = run("recommend", "dpcml", "--user", 7, "-n", 4, "--explain")
    assert shown.exit_code == 0, shown.output
    ids, scores, reasons = load(folder / "dpcml").recommend(7, 4, explain=True)
    for item, reason in zip(ids, reasons, strict=True):
        assert f" {item} " in shown.stdout
        assert reason.text in shown.stdout
    found = json.loads(run("recommend", "dpcml", "--user", 7, "-n", 4, "--explain", "--mix", 0.5, "--json").stdout)
    ids, scores, reasons = load(folder / "dpcml").recommend(7, 4, explain=True, mix=0.5)
    assert [one["id"] for one in found["items"]] == ids.tolist()
    assert [one["score"] for one in found["items"]] == pytest.approx(scores.tolist())
    assert found["items"][0]["reason"] == reasons[0].to_dict()


def test_somebody_new(run, folder):
    found = json.loads(run("recommend", "ease", "--history", "3, 5,8", "-n", 2, "--json").stdout)
    assert [one["id"] for one in found["items"]] == load(folder / "ease").recommend_new([3, 5, 8], 2)[0].tolist()
    assert "a new user who likes 3,5" in run("recommend", "dpcml", "--history", "3,5").stdout


def test_only_some_items(run, folder):
    train = load(folder / "dpcml").train_
    names = [str(name) for name in train.items.attributes.names[:2]]
    words = [word for name in names for word in ("--where", f"category={name}")]
    found = json.loads(run("recommend", "dpcml", "--user", 7, *words, "--show-known", "--json").stdout)
    assert found["items"]
    for one in found["items"]:
        assert set(train.items.attributes.of(int(train.item_columns([one["id"]])[0]))) & set(names)


def test_a_list_without_items_is_told(run, folder):
    train = load(folder / "dpcml").train_
    names = [train.items.title(item) for item in range(train.n_items)]
    seen = next(i for i in train.of(7).tolist() if sum(names[i].casefold() in one.casefold() for one in names) == 1)
    shown = run("recommend", "dpcml", "--user", 7, "--where", f"title={names[seen]}")
    assert shown.exit_code == 0
    assert "nothing is left to recommend" in shown.output
    assert names[seen] in run("recommend", "dpcml", "--user", 7, "--where", f"title={names[seen]}", "--seen").output


def test_blocks_without_any_list_have_the_same_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("dpcml.export.BLOCK", 1)
    likes = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0]])  # nothing is left for the first
    rows = write_recommendations(Popularity().fit(likes), tmp_path / "lists.parquet")
    assert pl.read_parquet(tmp_path / "lists.parquet")["user_id"].to_list() == [1, 1, 2, 2]
    assert rows == 4


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_lists_of_many_users_in_a_file(run, folder, tmp_path, monkeypatch, kind):
    monkeypatch.setattr("dpcml.export.BLOCK", 50)
    done = run("recommend", "dpcml", "--users", "all", "--out", f"lists.{kind}", "-n", 3, "--explain", "--json")
    assert json.loads(done.stdout) == {"out": f"lists.{kind}", "users": 120, "rows": 360, "model": "dpcml"}
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[kind]
    frame = read(tmp_path / f"lists.{kind}")
    assert frame.columns == ["user_id", "rank", "item_id", "score", "interest", "share", "reason"]
    expected = load(folder / "dpcml").recommend(np.arange(120), 3)[0]
    assert (frame["item_id"].to_numpy().reshape(120, 3) == expected).all()
    assert frame["rank"].to_list()[:4] == [1, 2, 3, 1]
    assert [file.name for file in tmp_path.iterdir()] == [f"lists.{kind}"], "nothing is left behind"


def test_lists_of_some_users_by_file(run, tmp_path):
    (tmp_path / "who.txt").write_text("user 5\n\nuser 2\n")
    assert run("recommend", "ease", "--users", "who.txt", "--out", "a/lists.csv", "-n", 1).exit_code == 0
    assert pl.read_csv(tmp_path / "a" / "lists.csv")["user_id"].to_list() == ["user 5", "user 2"]
    (tmp_path / "numbers.txt").write_text("7\n")
    run("recommend", "dpcml", "--users", "numbers.txt", "--out", "lists.jsonl", "-n", 1)
    assert json.loads((tmp_path / "lists.jsonl").read_text())["user_id"] == 7


def test_similar_and_interests(run, folder):
    model = load(folder / "dpcml")
    found = json.loads(run("similar", "dpcml", "--item", 4, "-n", 3, "--json").stdout)
    assert [one["id"] for one in found["items"]] == model.similar_items(4, 3)[0].tolist()
    assert found["items"][0]["title"] == model.train_.items.title(found["items"][0]["id"])
    found = json.loads(run("similar", "ease", "--user", "user 4", "-n", 3, "--json").stdout)
    assert [one["id"] for one in found["users"]] == load(folder / "ease").similar_users("user 4", 3)[0].tolist()
    assert model.train_.items.title(4) in run("similar", "dpcml", "--item", 4).stdout
    several = json.loads(run("similar", "dpcml", "--item", 4, "--item", 7, "-n", 3, "--json").stdout)["similar"]
    assert [one["item"] for one in several] == ["4", "7"]
    assert [one["id"] for one in several[1]["items"]] == model.similar_items(7, 3)[0].tolist()
    assert model.train_.items.title(7) in run("similar", "dpcml", "--item", 4, "--item", 7).stdout
    found = json.loads(run("interests", "dpcml", "--user", 4, "--json").stdout)
    assert found["interests"] == [json.loads(json.dumps(one.to_dict())) for one in model.interests(4)]
    shown = run("interests", "dpcml", "--history", "3,5,9").stdout
    assert all(one.name in shown for one in model.interests_new([3, 5, 9]))


@pytest.mark.parametrize("odd", ["two\nlines", "end\n", "\n", "a\r", "a\u2028"])
def test_an_id_that_would_break_a_file_of_ids_is_refused_and_nothing_is_left(tmp_path, odd):
    """Finding 14: an id that ended in a line break made two lines of one id."""
    data = Interactions.from_csr(np.eye(2), item_ids=["a", odd])
    with pytest.raises(DataError, match=r"has a line break, but item_ids\.txt holds one id per line"):
        export(EASE().fit(data), "npy", tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_export(run, folder, tmp_path):
    model = load(folder / "dpcml")
    assert run("export", "dpcml", "--to", "faiss-ready", "--out", "x").exit_code == 0
    about = json.loads((tmp_path / "x" / "export.json").read_text())
    queries, items = np.load(tmp_path / "x" / "queries.npy"), np.load(tmp_path / "x" / "items.npy")
    apart = ((queries[:, None] - items) ** 2).sum(axis=2).reshape(-1, about["queries_per_user"], len(items)).min(axis=1)
    np.testing.assert_allclose(-apart, model.score(np.arange(120)), atol=1e-4)
    assert run("export", "dpcml", "--to", "parquet", "--out", "x", "--json").exit_code == 0, "replaces an export"
    users = pl.read_parquet(tmp_path / "x" / "users.parquet")
    assert users["number"].to_list()[:4] == [0, 1, 2, 0]
    np.testing.assert_array_equal(np.array(users["vector"].to_list(), np.float32)[3:6], model.user_vectors_[1])
    places = np.load(tmp_path / "x" / "item_map.npy")
    assert places.shape == (len((tmp_path / "x" / "item_ids.txt").read_text().splitlines()), 2)
    assert np.abs(places).max() == 1.0
    assert np.ptp(places, axis=0).tolist() == [2.0, 2.0], "the map is filled in both directions"
    run("export", "ease", "--to", "npy", "--out", "y")
    assert (tmp_path / "y" / "user_ids.txt").read_text().splitlines()[3] == "user 3"


def test_users_and_histories_of_which_nothing_is_known(run, folder, tmp_path):
    popular = np.argsort(-load(folder / "dpcml").train_.per_item, kind="stable")[:3].tolist()
    for words in (("--user", 999, "--on-unknown", "popular"), ("--history", ",")):
        found = json.loads(run("recommend", "dpcml", *words, "-n", 3, "--json").stdout)
        assert [one["id"] for one in found["items"]] == popular
        assert found["popular"]
        assert "most popular items" in run("recommend", "dpcml", *words, "-n", 3).stderr
    skipped = json.loads(run("recommend", "dpcml", "--user", 999, "--on-unknown", "skip", "--json").stdout)
    assert (skipped["items"], skipped["unknown"]) == ([], {"users": ["999"]})
    words = "recommend", "dpcml", "--history", "1,nothing,2", "--on-unknown", "skip", "-n", 2
    assert "left out of the history: nothing" in run(*words).stderr
    assert json.loads(run(*words, "--json").stdout)["unknown"] == {"items": ["nothing"]}
    found = json.loads(run("similar", "dpcml", "--item", 4, "--item", 999, "--on-unknown", "skip", "--json").stdout)
    assert ([one["item"] for one in found["similar"]], found["unknown"]) == (["4"], {"items": ["999"]})
    assert "left out: 999" in run("similar", "dpcml", "--item", 4, "--item", 999, "--on-unknown", "skip").stderr
    words = "interests", "dpcml", "--history", "3,5,nothing", "--on-unknown", "skip"
    assert json.loads(run(*words, "--json").stdout)["unknown"] == {"items": ["nothing"]}
    assert "left out of the history: nothing" in run(*words).stderr
    (tmp_path / "excluded.txt").write_text("3\nnowhere\n")
    words = "recommend", "dpcml", "--user", 3, "--exclude", "excluded.txt", "--on-unknown", "skip"
    assert json.loads(run(*words, "--json").stdout)["unknown"] == {"items": ["nowhere"]}
    assert "left out of --items and --exclude: nowhere" in run(*words).stderr
    (tmp_path / "users.txt").write_text("7\n999\n3\n")
    ways = (("skip", [7, 3], "are left out"), ("popular", [7, 999, 3], "get popular items"))
    for way, users, said in ways:
        words = "--users", "users.txt", "--out", "lists.csv", "-n", 2, "--on-unknown", way
        assert f"users who are not known: 1; they {said}" in run("recommend", "dpcml", *words).stderr
        assert json.loads(run("recommend", "dpcml", *words, "--json").stdout)["users"] == len(users)
        assert pl.read_csv("lists.csv")["user_id"].unique(maintain_order=True).to_list() == users
    assert run("recommend", "dpcml", "--users", "users.txt", "--out", "lists.csv").exit_code == 2


def test_excluded_items_are_not_recommended(run, folder, tmp_path):
    first, second = load(folder / "dpcml").recommend(7, 2)[0].tolist()
    (tmp_path / "out.txt").write_text(f"{first}\n")
    found = json.loads(run("recommend", "dpcml", "--user", 7, "--exclude", "out.txt", "-n", 1, "--json").stdout)
    assert [one["id"] for one in found["items"]] == [second]
    found = json.loads(run("recommend", "dpcml", "--user", 7, "--items", "out.txt", "--json").stdout)
    assert [one["id"] for one in found["items"]] == [first], "the only candidate"


BAD = [
    (("recommend", "dpcml"), "name one of --user ID, --history"),
    (("recommend", "dpcml", "--user", 1, "--history", "2"), "name one of"),
    (("recommend", "dpcml", "--users", "empty.txt", "--out", "a.csv"), "empty.txt: names no user"),
    (("recommend", "dpcml", "--users", "all"), "--users and --out belong together"),
    (("recommend", "dpcm", "--user", 1), "or save wrote; did you mean '"),
    (("recommend", "dpcml", "--users", "emty.txt", "--out", "a.csv"), "did you mean 'empty.txt'?"),
    (("recommend", "dpcml", "--user", 1, "--out", "a.csv"), "belong together"),
    (("recommend", "dpcml", "--user", 999), "unknown user '999'"),
    (("recommend", "dpcml", "--user", 1, "-n", 0), "n=0: must be a whole number of at least 1"),
    (("recommend", "dpcml", "--user", 1, "--mix", 1.5), "mix=1.5: must be a number from 0 to 1"),
    (
        ("recommend", "ease", "--user", "user 1", "--mix", 0.5, "--mix-by", "interests"),
        "EASE knows no interests to mix",
    ),
    (("recommend", "dpcml", "--user", 1, "--where", "category"), "write KEY=VALUE"),
    (("recommend", "dpcml", "--user", 1, "--where", "category=Horor"), "no item has the category 'Horor'"),
    (("recommend", "dpcml", "--user", 1, "--where", "title=zzz"), "no item is left to choose from"),
    (("recommend", "dpcml", "--user", 1, "--on-unknown", "maybe"), "on_unknown='maybe'"),
    (("similar", "dpcml", "--user", 1, "--on-unknown", "skip"), "--on-unknown skip: goes with --item"),
    (("recommend", "dpcml", "--user", 1, "--exclude", "none.txt"), "none.txt: cannot be read"),
    (("recommend", "dpcml", "--user", 1, "--exclude", "thesis.txt"), "unknown item 'years of work'"),
    (("recommend", "dpcml", "--history", "999", "--on-unknown", "skip"), "unknown item '999'"),
    (("recommend", "dpcml", "--history", "1,999"), "unknown item '999'"),
    (("similar", "dpcml", "--item", "999", "--on-unknown", "skip"), "unknown item '999'"),
    (("similar", "dpcml", "--item", "1", "--on-unknown", "popular"), "on_unknown='popular'"),
    (("interests", "dpcml", "--history", "1,999"), "unknown item '999'"),
    (("recommend", "dpcml", "--users", "none.txt", "--out", "a.csv"), "none.txt: cannot be read"),
    (("recommend", "dpcml", "--users", "all", "--out", "a.xls"), "unknown file format 'xls'"),
    (("recommend", "nothing", "--user", 1), "there is no such folder"),
    (("similar", "dpcml"), "name one of --item ID and --user ID"),
    (("similar", "dpcml", "--item", 999), "unknown item '999'"),
    (("interests", "ease", "--user", "user 1"), "EASE has no interests"),
    (("interests", "dpcml"), "name one of --user ID and --history"),
    (("export", "ease", "--to", "parquet", "--out", "z"), "EASE has no user and item vectors"),
    (("export", "dpcml", "--to", "npz", "--out", "z"), "unknown export format 'npz': did you mean 'npy'?"),
    (("export", "dpcml", "--out", "."), "is not empty and not an older export"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(run, tmp_path, words, message):
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "empty.txt").touch()
    done = run(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert {file.name for file in tmp_path.iterdir()} == {"thesis.txt", "empty.txt"}


def test_escape_codes_of_ids_and_titles_do_not_reach_the_terminal(tmp_path, monkeypatch):
    """Finding 19."""
    monkeypatch.chdir(tmp_path)
    evil = "\x1b]0;owned\x07\x9b2J"
    items = ItemTable(np.array([evil, "b", "c"], dtype=object), titles=[f"{evil}title", "b", "c"])
    save(EASE().fit(Interactions.from_csr([[0, 1, 1], [1, 1, 0]], user_ids=[f"u{evil}", "v"], items=items)), "m")
    for words in (["recommend", "m", "--user", f"u{evil}", "--explain"], ["similar", "m", "--item", "b"]):
        shown = CliRunner().invoke(app, words)
        assert shown.exit_code == 0
        assert "\\x1b]0;owned\\x07\\x9b2J" in shown.stdout
        assert not set("\x1b\x07\x9b") & set(shown.stdout)
    wrong = CliRunner().invoke(app, ["recommend", "m", "--user", f"{evil}no\x1b"])
    assert wrong.exit_code == 2
    assert not set("\x1b\x07\x9b") & set(wrong.stderr)


def test_doctor_compiles_kernels_only_if_asked(monkeypatch):
    compiled = []
    monkeypatch.setattr("dpcml.warmup.warm_up", lambda: compiled.append(1))
    CliRunner().invoke(app, ["doctor", "--json"])
    assert not compiled
    assert json.loads(CliRunner().invoke(app, ["doctor", "--warm", "--json"]).stdout)["kernel_cache"]
    assert compiled


def test_doctor():
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert found["packages"]["numpy"] == np.__version__
    assert (found["kernel_cache"]["folder"], found["kernel_cache"]["writable"]) == (str(kernel_cache_folder()), True)
    assert found["extras"]["neural"] == []
    shown = CliRunner().invoke(app, ["doctor"])
    assert "steam-200k" in shown.stdout
    assert shown.exit_code == 0


def test_an_export_never_takes_the_place_of_other_files(run, tmp_path):
    assert run("export", "dpcml", "--to", "faiss-ready", "--out", "arrays").exit_code == 0
    assert run("export", "dpcml", "--to", "npy", "--out", "arrays").exit_code == 0, "an older export is replaced"
    (tmp_path / "arrays" / "items.faiss").write_text("built by hand")
    done = run("export", "dpcml", "--out", "arrays")
    assert done.exit_code == 2
    assert "holds 'items.faiss', which is not part of the older export" in done.stderr
    assert (tmp_path / "arrays" / "items.faiss").read_text() == "built by hand"
