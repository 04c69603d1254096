"""A model directory: arrays in safetensors, the rest in JSON, no pickle; it is written as a whole or not at all.

======================  ==================================================================================
``model.json``          the card: format, model, parameters, version, hashes, history, checksums
``model.safetensors``   what the model has learned
``data.safetensors``    seen items (the training matrix), ids that are numbers, items' attributes
``texts.json``          ids that are texts, titles, names of attributes
======================  ==================================================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import save_file

from dpcml.data.arrays import from_arrays, metadata, to_arrays
from dpcml.data.interactions import Interactions
from dpcml.models import MODELS, Recommender
from dpcml.training.trainer import History
from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError, DpcmlError, ParameterError, did_you_mean
from dpcml.utils.files import atomic_folder, map_arrays, present, read_arrays
from dpcml.utils.packages import version

KIND = "dpcml model"
FORMAT = 1
CARD, MODEL, DATA, TEXTS = "model.json", "model.safetensors", "data.safetensors", "texts.json"
FILES = (MODEL, DATA, TEXTS)


def save(model: Recommender, folder: str | Path, *, record: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted model to a folder: parameters, arrays, ids, titles, seen items.

    An older model at that place is replaced once the new one is whole; any other folder that is not empty is refused.

    Parameters
    ----------
    model
        A fitted model of a registered class.
    folder
        Where to; it is made, and its parents.
    record
        Plain data to keep in the card: where the data came from, how it was split.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcml import ItemKNN
    >>> model = ItemKNN(k=2).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]]))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = save(model, Path(place) / "knn")
    ...     load(folder).recommend(3, n=1)[0]
    array([1])
    """
    train = model.check_fitted()
    if model.name not in MODELS or MODELS[model.name] is not type(model):
        raise ParameterError(f"{type(model).__name__} is not registered: file it in MODELS, so that it can be loaded")
    target = free_place(folder)
    try:
        arrays = model.to_arrays()
    except DataError as error:
        raise DataError(f"this {type(model).__name__} cannot be saved: {error}; fit it anew") from None
    numbers, texts = to_arrays(train)
    try:
        with atomic_folder(target) as new:
            _write_json(new / TEXTS, texts)
            for name, some in ((MODEL, arrays), (DATA, numbers)):
                save_file(some, new / name)
                (new / name).chmod((new / TEXTS).stat().st_mode)  # safetensors would keep them from other users
            files = {name: {"bytes": (new / name).stat().st_size, "sha256": _sha256(new / name)} for name in FILES}
            _write_json(new / CARD, {**_card(model, train), "record": dict(record or {}), "files": files})
    except SafetensorError as error:
        reason = str(error).rpartition("I/O error: ")[2]
        raise DataError(f"{target}: cannot be written ({reason}); make room or choose another place") from None
    return target


def load(folder: str | Path, *, check: bool = True, mapped: bool = True) -> Recommender:
    """Return the model in a folder; it scores the same bits as the one that was saved.

    Arrays are mapped into memory, not read: a large model is there at once, and processes that load it share it.

    Parameters
    ----------
    folder
        Where `save` wrote it.
    check
        Compare the files with their checksums, which reads them once.
    mapped
        Map the arrays. Otherwise they are read, as a server needs it whose files may be overwritten in place.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcml import EASE
    >>> model = EASE(l2=2.0).fit(np.eye(4))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     loaded = load(save(model, Path(place) / "ease"), mapped=False)
    >>> loaded.l2, bool((loaded.score([0]) == model.score([0])).all())
    (2.0, True)
    """
    place = present(folder)
    card = read_card(folder)
    try:
        for name in FILES:
            _check_file(place / name, card["files"][name], check and (mapped or name == TEXTS))
        kind = _class(card)
        parameters = {name: _tuples(value) for name, value in card["parameters"].items()}
        data, learned = (_arrays(place / name, card["files"][name], check, mapped) for name in (DATA, MODEL))
        train = from_arrays(data, _read_json(place / TEXTS), card)
        model = kind.from_arrays(learned, train, parameters)
        if card["history"] is not None:
            model.history_ = History.from_dict(card["history"])  # type: ignore[attr-defined]
    except DpcmlError as error:
        raise DataError(f"{folder}: cannot be loaded: {error}") from None
    except OSError as error:
        raise DataError(f"{folder}: cannot be loaded: {Path(str(error.filename)).name}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"{folder}: damaged, {CARD} or {TEXTS} does not hold what it should ({error!r})") from None
    return model


def read_card(folder: str | Path) -> dict[str, Any]:
    """Return what a model directory says of itself, without loading the model.

    The keys are ``model`` (its registered name), ``class``, ``parameters``, ``version``, ``created``, ``data_hash``
    and ``split_hash`` of the training data, ``history``, ``record`` (what the caller of `save` added), and ``files``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcml import EASE
    >>> with tempfile.TemporaryDirectory() as place:
    ...     card = read_card(save(EASE(l2=2.0).fit(np.eye(4)), Path(place) / "ease", record={"why": "a try"}))
    >>> card["model"], card["parameters"]["l2"], card["record"]
    ('ease', 2.0, {'why': 'a try'})
    """
    place = present(folder)
    if not place.exists():
        raise DataError(f"{folder}: there is no such folder; name one that 'dpcml train' or save wrote")
    if not place.is_dir():
        raise DataError(f"{folder}: is a file; name the folder of a model")
    if not (place / CARD).is_file():
        raise DataError(f"{folder}: is no model, there is no {CARD} in it; name a folder that save wrote")
    try:
        card = _read_json(place / CARD)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{folder}: {CARD} is damaged or no JSON ({error})") from None
    if not isinstance(card, dict) or card.get("kind") != KIND or type(card.get("format")) is not int:
        raise DataError(f"{folder}: {CARD} was not written by dpcml; name the folder of a model")
    if card["format"] > FORMAT:
        raise DataError(
            f"{folder}: format {card['format']}, written by dpcml {card.get('version')}, is newer than this"
            f" dpcml {version()} can read ({FORMAT}); update dpcml"
        )
    wanted = {"model", "parameters", "data_hash", "split_hash", "history", "record", "files"}
    missing = sorted(wanted - card.keys())
    if missing or not isinstance(card["files"], dict) or not isinstance(card["record"], dict):
        raise DataError(f"{folder}: {CARD} is damaged: {', '.join(missing) or 'files or record'} missing")
    return card


def free_place(folder: str | Path) -> Path:
    """Return the full path of a folder that a model may be written to, or say what stands in its way.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = (Path(place) / "thesis.txt").write_text("years of work")
    ...     free_place(place)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: ...: holds thesis.txt, which is no part of a model; name another folder, or a new one
    """
    place = Path(folder).resolve()
    if Path.cwd().is_relative_to(place):
        raise DataError(f"{folder}: is the current folder or one above it; name a new folder")
    if not place.exists():
        return place
    if not place.is_dir():
        raise DataError(f"{folder}: is a file; name a folder")
    try:
        found = sorted(file.name for file in place.iterdir())
    except OSError as error:
        raise DataError(f"{folder}: cannot be looked into ({error.strerror}); name another folder") from None
    foreign = [name for name in found if name not in (CARD, *FILES)]
    if not foreign and found:
        try:
            read_card(place)
        except DataError:
            foreign = found
    if foreign:
        raise DataError(f"{folder}: holds {foreign[0]}, which is no part of a model; name another folder, or a new one")
    return place


def _card(model: Recommender, train: Interactions) -> dict[str, Any]:
    history = getattr(model, "history_", None)
    return {
        "kind": KIND,
        "format": FORMAT,
        "model": model.name,
        "class": type(model).__name__,
        "parameters": model.plain_params(),
        "version": version(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **metadata(train),
        "history": None if history is None else history.to_dict(),
    }


def _class(card: Mapping[str, Any]) -> type[Recommender]:
    name = card["model"]
    if name not in MODELS:
        hint = did_you_mean(str(name), MODELS)
        raise DataError(f"unknown model {name!r}: {hint}; import the module that registers it, or update dpcml")
    return MODELS[name]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _check_file(path: Path, said: Mapping[str, Any], check: bool) -> None:
    if not path.is_file():
        raise DataError(f"{path.name} is missing")
    if path.stat().st_size != said["bytes"]:
        raise DataError(f"{path.name} is damaged: {path.stat().st_size:,} bytes instead of {said['bytes']:,}")
    if check and _sha256(path) != said["sha256"]:
        raise DataError(f"{path.name} is damaged: its checksum is not that of the file that was saved")


def _arrays(path: Path, said: Mapping[str, Any], check: bool, mapped: bool) -> dict[str, Array]:
    return map_arrays(path) if mapped else read_arrays(path, said["sha256"] if check else None)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, plain: Mapping[str, Any]) -> None:
    # ASCII only, so that even a lone surrogate in an id survives; NumPy scalars among parameters become numbers.
    text = json.dumps(plain, indent=1, default=lambda value: value.item() if hasattr(value, "item") else str(value))
    path.write_text(text + "\n", encoding="utf-8")
