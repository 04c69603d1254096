"""The scripts of ``tools`` that no other test runs."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bits():
    spec = importlib.util.spec_from_file_location("bits", ROOT / "tools" / "bits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_bits_of_two_runs_are_the_same_and_of_two_settings_are_not(bits, tmp_path, monkeypatch):
    sp.save_npz(tmp_path / "likes.npz", sp.csr_array(np.kron(np.eye(2), np.ones((6, 5)))))
    monkeypatch.setattr(bits, "SETTINGS", [("CML", {"dim": 8}), ("CML", {"dim": 8, "margin": 0.5})])
    one, two = (bits.train(tmp_path) for _ in range(2))
    assert one == two
    assert len(set(one.values())) == 2


def test_bits_that_differ_are_named(bits, tmp_path, capsys):
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    for file, digest in zip(files, ("a", "b"), strict=True):
        file.write_text(json.dumps({"bits": {"likes: CML()": digest, "likes: DPCML()": "c"}}))
    assert bits.compare(*files) == 1
    assert capsys.readouterr().out == "1 of 2 models have the same bits\ndifferent: likes: CML()\n"
    files[0].write_text(json.dumps({"bits": {"likes: CML()": "a"}}))
    with pytest.raises(SystemExit, match="different settings"):
        bits.compare(*files)


def test_fingerprints_are_renewed_only_where_all_bits_are_the_same(bits, tmp_path):
    table = tmp_path / "results" / "paper" / "overall.csv"
    table.parent.mkdir(parents=True)
    rows = "label,fingerprint\nHarS,0123abcd-11111111-22222222-33333333\nEASE,4567abcd-11111111-22222222-33333333\n"
    table.write_text(rows)
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    for file, code in zip(files, ("0123abcd", "89abcdef"), strict=True):
        file.write_text(json.dumps({"bits": {"CML()": "a"}, "codes": {"cml": code, "ease": "4567abcd"}}))
    assert bits.renew(*files, tmp_path / "results") == 1
    assert table.read_text() == rows.replace("0123abcd", "89abcdef")
    files[1].write_text(json.dumps({"bits": {"CML()": "b"}, "codes": {"cml": "00000000", "ease": "4567abcd"}}))
    with pytest.raises(SystemExit, match="made again"):
        bits.renew(*files, tmp_path / "results")
    assert table.read_text() == rows.replace("0123abcd", "89abcdef")


def test_codes_of_models_are_those_of_fingerprints(bits):
    found = bits.codes()
    assert found["hars"] == found["cml"] != found["ease"]
