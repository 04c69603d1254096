import errno
import io
import json
import pickle

import numpy as np
import polars as pl
import pytest

from dpcml import DataError, Interactions, ParameterError
from dpcml.data.datasets import load_dataset
from dpcml.data.prepare import Rules
from dpcml.data.shards import Shards, received, to_send
from dpcml.scale.ingestion import ingest
from dpcml.utils.errors import RecoveryWarning


@pytest.fixture
def frame():
    """Rows with duplicates, and users and items with few positives."""
    rng = np.random.default_rng(1)
    n = 3000
    columns = {
        "user": rng.integers(0, 200, n) ** 2,
        "item": rng.integers(0, 90, n) * 7,
        "rating": rng.integers(1, 6, n),
    }
    return pl.DataFrame(columns)


def written(frame, folder, n_files=3, suffix="parquet"):
    files = [folder / f"likes-{k}.{suffix}" for k in range(n_files)]
    for k, file in enumerate(files):
        some = frame[k::n_files]
        some.write_parquet(file) if suffix == "parquet" else some.write_csv(file)
    return files


RULES = [{}, {"min_rating": 3}, {"min_rating": 4, "min_user_interactions": 4}, {"core": 9}, {"text_ids": True}]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_shards_hold_what_the_reader_in_memory_gives(tmp_path, frame, rules, suffix, monkeypatch):
    monkeypatch.setattr("dpcml.scale.rows.BATCH", 500)
    folder = ingest(written(frame, tmp_path, suffix=suffix), tmp_path / "shards", rules=Rules.of(rules), shard_rows=400)
    shards, whole = Shards.open(folder, check=True), Interactions.from_frame(frame, **rules)
    found = shards.interactions()
    assert len(shards) > 3
    assert found.content_hash == whole.content_hash
    for name in ("rows", "below_rating", "duplicates", "users_dropped", "items_dropped"):
        assert getattr(found.preparation, name) == getattr(whole.preparation, name), name
    assert (found.low_rated is None) == (whole.low_rated is None)
    if whole.low_rated is not None:
        assert (found.low_rated != whole.low_rated).nnz == 0


def test_text_ids(tmp_path):
    frame = pl.DataFrame({"user": ["ann", "bob", "ann", "zoë"], "item": ["tea", "tea", "jam", "007"]})
    folder = ingest(written(frame, tmp_path), tmp_path / "shards", shard_rows=2)
    assert Shards.open(folder).interactions().content_hash == Interactions.from_frame(frame).content_hash


def test_the_split_is_by_pair_and_everybody_trains(tmp_path, frame):
    folder = ingest(written(frame, tmp_path), tmp_path / "a", shard_rows=500)
    split = Shards.open(folder).split()
    sizes = np.array([part.n_positives for part in split])
    assert np.abs(sizes / sizes.sum() - [0.6, 0.2, 0.2]).max() < 0.05
    assert split.train.per_user.min() >= 1
    assert sum(part.csr for part in split).max() == 1
    assert split.train.split_hash == split.test.split_hash == split.hash
    less = ingest(written(frame[:1500], tmp_path, 1), tmp_path / "b")  # other rows, other shards: the same pairs

    def test_pairs(folder):
        test = Shards.open(folder).interactions("test")
        return {*zip(test.user_ids[test.rows].tolist(), test.item_ids[test.indices].tolist(), strict=True)}

    train = Shards.open(folder).interactions("train")
    learned = {*zip(train.user_ids[train.rows].tolist(), train.item_ids[train.indices].tolist(), strict=True)}
    assert len(test_pairs(less) & learned) <= 2, "only users who would have had nothing to train on"
    other = ingest(written(frame, tmp_path), tmp_path / "c", split_seed=1)
    assert test_pairs(other) != test_pairs(folder)


def test_the_part_of_a_pair_depends_on_whether_ids_are_text(tmp_path, frame):
    """`docs/how-to/scale.md` says so; the published figures rest on the hashes of integers."""
    folder = ingest(written(frame, tmp_path), tmp_path / "integers")
    text = ingest(written(frame, tmp_path), tmp_path / "text", rules=Rules(text_ids=True))
    one, other = (Shards.open(place).interactions("test") for place in (folder, text))
    pairs = [{*zip(map(str, x.user_ids[x.rows]), map(str, x.item_ids[x.indices]), strict=True)} for x in (one, other)]
    assert pairs[0] != pairs[1]


def test_another_process_gets_the_place_of_its_users_and_reads_their_shards(tmp_path, frame):
    folder = ingest(written(frame, tmp_path), tmp_path / "shards", rules=Rules(min_rating=3), shard_rows=500)
    train = Shards.open(folder).interactions("train")
    for first, last in [(0, train.n_users), (7, 150), (30, 31)]:
        some = train.users_between(first, last)
        sent = pickle.dumps(to_send(some))
        assert len(sent) < 500
        found = received(pickle.loads(sent))
        assert found.content_hash == some.content_hash
        assert (found.low_rated != some.low_rated).nnz == 0
        assert found.users_between(0, 1).content_hash == train.users_between(first, first + 1).content_hash
    less = train.select(train.indices != 3)  # no longer what the shards hold
    assert to_send(less) is less
    assert received(None) is to_send(None) is None
    sent = to_send(train)
    ingest(written(frame[:2000], tmp_path), folder)
    with pytest.raises(DataError, match="holds other shards than where the command runs"):
        received(sent)


def test_no_room_for_the_positives_of_all_shards(tmp_path, frame, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    shards = Shards.open(ingest(written(frame, tmp_path), tmp_path / "shards", shard_rows=500))
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    with pytest.raises(DataError, match=r"no room for .* bytes while the shards are read \(No space left"):
        shards.interactions()


def test_other_verbs_read_shards(tmp_path, frame):
    folder = ingest(written(frame, tmp_path), tmp_path / "shards")
    assert load_dataset(folder).content_hash == Interactions.from_frame(frame).content_hash
    with pytest.raises(ParameterError, match=r"core: .* holds shards"):
        load_dataset(folder, core=5)


def test_missing_damaged_and_foreign_shards(tmp_path, frame):
    folder = ingest(written(frame, tmp_path), tmp_path / "shards", shard_rows=500)
    file = folder / "shard-00001.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match=r"shard-00001.*not the file that was written \(its checksum"):
        Shards.open(folder).interactions()
    with pytest.raises(DataError, match=r"shard-00001.*not the file that was written \(its checksum"):
        load_dataset(folder)
    assert len(Shards.open(folder, check=False)) > 1
    file.write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"shard-00001.*not the file that was written \(its size"):
        Shards.open(folder)
    file.unlink()
    with pytest.raises(DataError, match=r"shard-00001.*a shard is missing"):
        Shards.open(folder)
    file.write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"users": 1}))
    with pytest.raises(DataError, match=r"manifest\.json: is damaged, its checksum differs"):
        Shards.open(folder)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 99, "version": "9.9"}))
    with pytest.raises(DataError, match=r"format 99, written by dpcml 9\.9"):
        Shards.open(folder)


def test_shards_that_a_killed_ingestion_put_aside_are_found_with_a_warning(tmp_path, frame):
    folder = ingest(written(frame, tmp_path), tmp_path / "shards")
    folder.rename(tmp_path / ".shards.replaced")
    with pytest.warns(RecoveryWarning, match=r"shards: is missing; \.shards\.replaced"):
        assert load_dataset(folder).content_hash == Interactions.from_frame(frame).content_hash


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"item": [1, None, 3]}, "likes-0.parquet, row 2: the item id is missing"),
        ({"item": [1, -4, 3]}, "whole-number ids must lie between"),
        ({"rating": ["a", "4", "5"]}, "row 1: rating 'a': must be a finite number"),
    ],
)
def test_bad_values_are_named_and_nothing_is_written(tmp_path, change, said):
    frame = pl.DataFrame({"user": [1, 2, 3], "item": [1, 2, 3], "rating": [3, 4, 5]} | change)
    with pytest.raises(DataError, match=said):
        ingest(written(frame, tmp_path, 1), tmp_path / "shards", rules=Rules(min_rating=4))
    assert [path.name for path in tmp_path.iterdir()] == ["likes-0.parquet"]


def test_bad_requests(tmp_path, frame):
    files = written(frame, tmp_path, 1)
    with pytest.raises(DataError, match="no such file"):
        ingest([tmp_path / "none.csv"], tmp_path / "shards")
    with pytest.raises(DataError, match="no rating column"):
        ingest(files, tmp_path / "shards", rating="", rules=Rules(min_rating=4))
    with pytest.raises(DataError, match=r"all 200 users are filtered out by core=10000: the most active user has \d\d"):
        ingest(files, tmp_path / "shards", rules=Rules(core=10_000))
    with pytest.raises(DataError, match="no rating reaches min_rating=6; lower it"):
        ingest(files, tmp_path / "shards", rules=Rules(min_rating=6))
    with pytest.raises(DataError, match="holds something else than shards"):
        ingest(files, tmp_path)
    with pytest.raises(DataError, match="three parts"):
        ingest(files, tmp_path / "shards", parts=(0.5, 0.5))
