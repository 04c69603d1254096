"""Folders that are no model, or no longer a whole one: loading them says what is wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import dpcml
from dpcml import ItemKNN
from dpcml.storage import CARD, DATA, FILES, MODEL, TEXTS, load, read_card, save, signed
from dpcml.utils.errors import DataError


@pytest.fixture
def folder(blocks, tmp_path):
    """A saved model."""
    return save(ItemKNN(k=5).fit(blocks), tmp_path / "model")


def edit(folder: Path, **changes: object) -> None:
    """Write another whole card, checksum included."""
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(signed({**card, **changes})))


def rewrite(folder: Path, name: str, arrays: dict[str, np.ndarray]) -> None:
    """Replace a file of arrays by another whole one, checksum included."""
    save_file(arrays, folder / name)
    content = (folder / name).read_bytes()
    files = read_card(folder)["files"]
    files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(folder, files=files)


def test_what_is_no_model(tmp_path, folder):
    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"is no model, there is no model\.json"):
        load(tmp_path)
    with pytest.raises(DataError, match="is a file"):
        load(folder / CARD)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("\udcff", "no JSON"),
        ("[1, 2]", "not written by dpcml"),
        ('{"name": "left-pad", "version": "1.0"}', "not written by dpcml"),
        ('{"kind": "dpcml model", "format": "1"}', "not written by dpcml"),
        ('{"kind": "dpcml model", "format": 3, "version": "9.1"}', "format 3, written by dpcml 9.1, is newer"),
        ('{"kind": "dpcml model", "format": 1}', "damaged: data_hash"),
    ],
)
def test_foreign_newer_and_broken_cards(folder, text, message):
    (folder / CARD).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=message):
        load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "itemknm"}, "unknown model 'itemknm': did you mean 'itemknn'"),
        ({"model": ["itemknn"]}, "model.json"),
        ({"parameters": {"k": 0}}, "k=0: must be"),
        ({"parameters": {"kk": 3}}, "no parameter 'kk'"),
        ({"parameters": {"shrink": "much"}}, "shrink='much'"),
        ({"parameters": 7}, "damaged"),
        ({"users": 61}, "shape"),
        ({"items": 41}, "shape"),
        ({"items": 39}, "shape|position"),
        ({"positives": 3}, "shape"),
        ({"users": None}, "damaged"),
        ({"preparation": {"rowz": 1}}, "damaged"),
        ({"history": {"epochs": []}}, "damaged"),
        ({"files": {}}, "damaged"),
        ({"files": dict.fromkeys(FILES, 5)}, "damaged"),
        ({"data_hash": "0" * 64}, "of other data than model.json says"),
    ],
)
def test_cards_that_do_not_fit(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises(DataError, match=message) as caught:
        load(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(folder, name):
    content = (folder / name).read_bytes()
    for damaged, message in (
        (content[:-1], "bytes instead of"),
        (b"", "bytes instead of"),
        (content[:-1] + bytes([content[-1] ^ 1]), "checksum"),
        (bytes([content[0] ^ 1]) + content[1:], "checksum"),
    ):
        (folder / name).write_bytes(damaged)
        with pytest.raises(DataError, match=rf"{name} is damaged: .*{message}"):
            load(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"{name} is missing"):
        load(folder)


def test_a_card_with_any_bit_flipped_is_refused_or_says_the_same(folder):
    """Finding 9: parameters, history and record of a card were trusted."""
    content, card = (folder / CARD).read_bytes(), read_card(folder)
    rng, refused = np.random.default_rng(0), 0
    for place in rng.choice(len(content) * 8, 300, replace=False).tolist():
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        (folder / CARD).write_bytes(damaged)
        try:
            assert read_card(folder) == card  # 1e-05 and 1E-05 are the same
        except DataError:
            refused += 1
    assert refused > 250


def test_a_card_that_was_edited_by_hand_is_refused(folder):
    (folder / CARD).write_text((folder / CARD).read_text().replace('"shrink": 10.0', '"shrink": 11.0'))
    with pytest.raises(DataError, match=r"model\.json is damaged: its checksum"):
        load(folder)
    assert load(folder, check=False).shrink == 11.0


def test_the_data_of_another_model_are_refused(blocks, folder, tmp_path):
    """Finding 9: the hash of the data was written, and never compared; the sizes are the same here."""
    half = blocks.select(np.arange(blocks.n_positives) % 2 == 0)
    other = save(ItemKNN(k=5).fit(blocks.select(np.arange(blocks.n_positives) % 2 == 1)), tmp_path / "other")
    mine = save(ItemKNN(k=5).fit(half), tmp_path / "half")
    assert read_card(mine)["data_hash"] != read_card(other)["data_hash"]
    (mine / DATA).write_bytes((other / DATA).read_bytes())
    edit(
        mine,
        positives=read_card(other)["positives"],
        files={**read_card(mine)["files"], DATA: read_card(other)["files"][DATA]},
    )
    with pytest.raises(DataError, match="of other data than"):
        load(mine)


def test_unchecked_files_still_cannot_break_anything(folder):
    broken = bytearray((folder / MODEL).read_bytes())
    broken[0] ^= 64
    (folder / MODEL).write_bytes(broken)
    with pytest.raises(DataError, match="no safetensors"):
        load(folder, check=False)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (MODEL, lambda arrays: {}, "'similarity_' is missing"),
        (MODEL, lambda arrays: {"similarity_.data": arrays["similarity_.data"]}, "'similarity_.indptr' is missing"),
        (MODEL, lambda arrays: {**arrays, "similarity_.data": arrays["similarity_.data"][1:]}, "shape"),
        (MODEL, lambda arrays: {**arrays, "similarity_.data": arrays["similarity_.data"].astype(int)}, "wrong type"),
        (MODEL, lambda arrays: {**arrays, "similarity_.indices": arrays["similarity_.indices"] + 1}, "position 40"),
        (MODEL, lambda arrays: {**arrays, "similarity_.indptr": arrays["similarity_.indptr"][::-1].copy()}, "rows"),
        (DATA, lambda arrays: {**arrays, "seen.indices": arrays["seen.indices"] - 1}, "position -1"),
        (DATA, lambda arrays: {**arrays, "seen.indices": arrays["seen.indices"] // 2}, "ascend"),
        (DATA, lambda arrays: {**arrays, "item_ids": arrays["item_ids"] * 0}, "occurs twice"),
        (DATA, lambda arrays: {**arrays, "item_ids": arrays["item_ids"][:-1]}, "shape"),
    ],
)
def test_arrays_that_do_not_fit(folder, name, change, message):
    rewrite(folder, name, change(load_file(folder / name)))
    with pytest.raises(DataError, match=message):
        load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda texts: {**texts, "user_ids": texts["user_ids"][1:]}, "user_ids has not one text for each of"),
        (lambda texts: {**texts, "user_ids": 5}, "user_ids has not one text for each of"),
        (lambda texts: [], "'user_ids' is missing"),
        (lambda texts: {}, "'user_ids' is missing"),
    ],
)
def test_texts_that_do_not_fit(folder, change, message):
    (folder / TEXTS).write_text(json.dumps(change(json.loads((folder / TEXTS).read_text()))))
    files = read_card(folder)["files"]
    files[TEXTS]["bytes"] = (folder / TEXTS).stat().st_size
    edit(folder, files=files)
    with pytest.raises(DataError, match=message):
        load(folder, check=False)


def test_no_pickle_and_nothing_else(folder):
    assert sorted(file.name for file in folder.iterdir()) == sorted((CARD, *FILES))
    assert dpcml.load is load
    assert dpcml.save is save
