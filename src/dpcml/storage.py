"""A model directory: arrays in safetensors, the rest in JSON, no pickle; it is written as a whole or not at all.

======================  ==================================================================================
``model.json``          the card: format, model, parameters, version, hashes, history, checksums
``model.safetensors``   what the model has learned
``data.safetensors``    seen items (the training matrix), ids that are numbers, items' attributes
``texts.json``          ids that are texts, titles, names of attributes
``evaluation/``         the same files again, of the model by which held-out figures are made, if there is one
======================  ==================================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from dpcml.data.arrays import from_arrays, metadata, to_arrays
from dpcml.data.interactions import Interactions
from dpcml.models import MODELS, Recommender
from dpcml.models.parameters import saved_class
from dpcml.training.trainer import History
from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError, DpcmlError, ParameterError
from dpcml.utils.files import atomic_folder, full_path, near_hint, signed, to_json
from dpcml.utils.packages import version
from dpcml.utils.saved_files import map_arrays, open_folder, read_arrays

KIND = "dpcml model"
FORMAT = 2  # 1 had no checksum of the card
CARD, MODEL, DATA, TEXTS = "model.json", "model.safetensors", "data.safetensors", "texts.json"
FILES = (MODEL, DATA, TEXTS)
EVALUATION = "evaluation"  # folder in a model directory: the model that was fitted on the training part only


def save(
    model: Recommender,
    folder: str | Path,
    *,
    record: Mapping[str, Any] | None = None,
    evaluation: Recommender | None = None,
) -> Path:
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
    evaluation
        For a model that was fitted on everything: the one that was fitted on a training part, by which held-out figures
        are made. It is kept in a folder below and takes as much room as the model itself.

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
    target = free_place(folder)
    with atomic_folder(target) as new:
        _write(model, new, record)
        if evaluation is not None:
            (new / EVALUATION).mkdir()
            _write(evaluation, new / EVALUATION, record)
    return target


def _write(model: Recommender, new: Path, record: Mapping[str, Any] | None) -> None:
    """Write the files of a model to a folder that is there and empty."""
    train = model.check_fitted()
    if model.name not in MODELS or MODELS[model.name] is not type(model):
        raise ParameterError(f"{type(model).__name__} is not registered: file it in MODELS, so that it can be loaded")
    try:
        arrays = model.to_arrays()
    except DataError as error:
        raise DataError(f"this {type(model).__name__} cannot be saved: {error}; fit it anew") from None
    numbers, texts = to_arrays(train)
    _write_json(new / TEXTS, texts)
    for name, some in ((MODEL, arrays), (DATA, numbers)):
        save_file(some, new / name)
        (new / name).chmod((new / TEXTS).stat().st_mode)  # safetensors would keep them from other users
    files = {name: {"bytes": (new / name).stat().st_size, "sha256": _sha256(new / name)} for name in FILES}
    _write_json(new / CARD, signed({**_card(model, train), "record": dict(record or {}), "files": files}))


def load(folder: str | Path, *, check: bool = True, mapped: bool = True) -> Recommender:
    """Return the model in a folder; it scores the same bits as the one that was saved.

    Arrays are mapped into memory, not read: a large model is there at once, and processes that load it share it.
    Another process may save to the folder meanwhile: what comes back is the old model or the new one.

    Parameters
    ----------
    folder
        Where `save` wrote it.
    check
        Compare files, card and data with their checksums, which reads the files once.
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
    return load_with_card(folder, check=check, mapped=mapped)[0]


def load_with_card(
    folder: str | Path, *, check: bool = True, mapped: bool = True
) -> tuple[Recommender, dict[str, Any]]:
    """Return the model in a folder, as `load` does, and its card, as `read_card` does, both of the same saving.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcml import EASE
    >>> with tempfile.TemporaryDirectory() as place:
    ...     model, card = load_with_card(save(EASE(l2=2.0).fit(np.eye(4)), Path(place) / "ease"))
    >>> model.l2, card["parameters"]
    (2.0, {'l2': 2.0, 'form': 'auto', 'k': 200, 'beta': 0.0, 'l2_per_like': 6.0})
    """
    with _opened(folder, (CARD, *FILES)) as files:
        card = _card_of(folder, files.get(CARD), check)
        try:
            return _model_of(card, files, check, mapped), card
        except DpcmlError as error:
            raise DataError(f"{folder}: cannot be loaded: {error}") from None
        except OSError as error:
            raise DataError(f"{folder}: cannot be loaded: {error.strerror}") from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise DataError(f"{folder}: damaged, {CARD} or {TEXTS} does not hold what it should ({error!r})") from None


def read_card(folder: str | Path) -> dict[str, Any]:
    """Return what a model directory says of itself, without loading the model.

    The keys are ``model`` (its registered name), ``class``, ``parameters``, ``version``, ``created``, ``data_hash``
    and ``split_hash`` of the training data, ``history``, ``record`` (what the caller of `save` added), ``files``, and
    ``checksum`` of all the others.

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
    with _opened(folder, (CARD,)) as files:
        return _card_of(folder, files.get(CARD), check=True)


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
    place = full_path(folder)
    with suppress(FileNotFoundError):  # somebody has deleted the current folder
        if Path.cwd().is_relative_to(place):
            raise DataError(f"{folder}: is the current folder or one above it; name a new folder")
    try:
        if not place.exists():
            return place
        if not place.is_dir():
            raise DataError(f"{folder}: is a file; name a folder")
        found = sorted(file.name for file in place.iterdir())
        below = sorted(file.name for file in (place / EVALUATION).glob("*"))
    except OSError as error:
        raise DataError(f"{folder}: cannot be looked into ({error.strerror}); name another folder") from None
    foreign = [name for name in found if name not in (CARD, *FILES, EVALUATION)]
    foreign += [f"{EVALUATION}/{name}" for name in below if name not in (CARD, *FILES)]
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


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@contextmanager
def _opened(folder: str | Path, names: Sequence[str]) -> Iterator[dict[str, BufferedReader]]:
    """Open files of a model directory at one moment, or say why it is none."""
    with ExitStack() as stack:
        try:
            files = stack.enter_context(open_folder(folder, names))
        except FileNotFoundError:
            said = f"{folder}: there is no such folder; name one that 'dpcml train' or save wrote"
            raise DataError(f"{said}{near_hint(folder, folders=True)}") from None
        except NotADirectoryError:
            raise DataError(f"{folder}: is a file; name the folder of a model") from None
        except (OSError, ValueError) as error:
            raise DataError(f"{folder}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
        yield files


def _card_of(folder: str | Path, file: BufferedReader | None, check: bool) -> dict[str, Any]:
    if file is None:
        raise DataError(f"{folder}: is no model, there is no {CARD} in it; name a folder that save wrote")
    try:
        card = json.loads(file.read().decode("utf-8"))
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
    if check and card["format"] != 1 and signed(card)["checksum"] != card.get("checksum"):
        raise DataError(f"{folder}: {CARD} is damaged: its checksum is not that of the card that was saved")
    return card


def _model_of(card: Mapping[str, Any], files: Mapping[str, BufferedReader], check: bool, mapped: bool) -> Recommender:
    for name in FILES:
        if name not in files:
            raise DataError(f"{name} is missing")
        size, said = os.fstat(files[name].fileno()).st_size, card["files"][name]["bytes"]
        if size != said:
            raise DataError(f"{name} is damaged: {size:,} bytes instead of {said:,}")
    kind = saved_class(card["model"])
    parameters = {name: _tuples(value) for name, value in card["parameters"].items()}
    numbers, learned = (_arrays(files[name], card["files"][name], check, mapped) for name in (DATA, MODEL))
    texts = files[TEXTS].read()
    if check and hashlib.sha256(texts).hexdigest() != card["files"][TEXTS]["sha256"]:
        raise DataError(f"{TEXTS} is damaged: its checksum is not that of the file that was saved")
    train = from_arrays(numbers, json.loads(texts.decode("utf-8")), card)
    if check and train.content_hash != card["data_hash"]:
        raise DataError(f"{DATA} and {TEXTS} are of other data than {CARD} says (data_hash); save the model anew")
    model = kind.from_arrays(learned, train, parameters)
    if card["history"] is not None:
        model.history_ = History.from_dict(card["history"])  # type: ignore[attr-defined]
    return model


def _arrays(file: BufferedReader, said: Mapping[str, Any], check: bool, mapped: bool) -> dict[str, Array]:
    if not mapped:
        return read_arrays(file, said["sha256"] if check else None)
    if check and hashlib.file_digest(file, "sha256").hexdigest() != said["sha256"]:
        raise DataError(f"{file.name} is damaged: its checksum is not that of the file that was saved")
    return map_arrays(file)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, plain: Mapping[str, Any]) -> None:
    path.write_text(to_json(plain) + "\n", encoding="utf-8")
