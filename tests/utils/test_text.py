import tomllib

import pytest

from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.text import plain, printable, read_toml, toml_text


def test_what_is_written_is_read_again():
    settings = {
        "data": 'odd "name" ü.csv', "seed": 3, "tiny": 1e-05, "yes": True, "none": None,
        "parameters": {"diversity": (0.1, None), "l2": 2.0, "odd key": [1, 2]},
    }  # fmt: skip
    found = tomllib.loads(toml_text(settings))
    parameters = found.pop("parameters")
    assert {key: plain(value) for key, value in found.items()} == {
        key: value for key, value in settings.items() if key != "parameters"
    }
    assert {key: plain(value) for key, value in parameters.items()} == {
        "diversity": (0.1, None), "l2": 2.0, "odd key": (1, 2),
    }  # fmt: skip


def test_what_toml_cannot_hold_is_refused():
    with pytest.raises(ParameterError, match="can be written as TOML"):
        toml_text({"a": object()})


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "a.toml").write_text("a = ")
    with pytest.raises(DataError, match=r"a\.toml: no valid TOML"):
        read_toml(tmp_path / "a.toml")


def test_control_characters_are_spelled_out_and_other_text_stays():
    """Finding 19: escape codes in an id reached the terminal."""
    assert printable("\x1b]0;owned\x07\x9b2J\r\u202e") == "\\x1b]0;owned\\x07\\x9b2J\\r\\u202e"
    assert printable("Amélie\n\t日本 😀") == "Amélie\n\t日本 😀"
