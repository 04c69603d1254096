"""Fetching named sets from their public home, here a server of our own."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dpcml.data.catalog import CATALOG, fetch, load, locate, places
from dpcml.data.catalog.dataset import DataSet, Download
from dpcml.utils.errors import DownloadError


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def home(data: Path, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The public home of data sets: a folder, and its address."""
    folder = tmp_path / "home"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def publish(
    monkeypatch: pytest.MonkeyPatch, name: str, *downloads: Download, content_hash: str | None = None
) -> DataSet:
    entry = replace(CATALOG[name], downloads=downloads, content_hash=content_hash)
    monkeypatch.setitem(CATALOG._entries, name, entry)
    return entry


def test_fetch_unpacks_an_archive(home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = home
    ratings = "".join(f"{user}::{movie}::5::978300760\n" for user in (1, 2, 7) for movie in range(1, 20))
    with zipfile.ZipFile(folder / "ml.zip", "w") as bundle:
        bundle.writestr("ml-1m/ratings.dat", ratings)
        bundle.writestr("ml-1m/movies.dat", "1::Toy Story (1995)::Animation\n")
        bundle.writestr("ml-1m/README", "?")
    md5 = hashlib.md5((folder / "ml.zip").read_bytes()).hexdigest()
    members = CATALOG["ml-1m"].downloads[0].members
    publish(monkeypatch, "ml-1m", Download(f"{url}/ml.zip", "ml.zip", md5=md5, members=members))
    seen: list[int] = []
    found = load("ml-1m", progress=lambda done, total: seen.append(done))
    assert found.n_users == 3
    assert seen
    cache = places("ml-1m")["cache"]
    assert locate("ml-1m") == fetch("ml-1m") == cache
    assert sorted(path.name for path in cache.iterdir()) == ["movies.dat", "ratings.dat"]
    assert [path.name for path in cache.parent.iterdir()] == ["ml-1m"]


def test_fetch_goes_on_after_a_failure(home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = home
    (folder / "train.txt").write_text("0 1 2\n")
    publish(monkeypatch, "gowalla", *(Download(f"{url}/{name}", name) for name in ("train.txt", "test.txt")))
    with pytest.raises(DownloadError, match="404"):
        fetch("gowalla")
    assert locate("gowalla") is None
    (folder / "test.txt").write_text("0 3\n")
    (folder / "train.txt").unlink()  # it is here already
    assert sorted(path.name for path in fetch("gowalla").iterdir()) == ["test.txt", "train.txt"]


def test_fetch_checks_content_where_no_checksum_is_known(
    home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = home
    (folder / "train.txt").write_text("0 1 2\n")
    (folder / "test.txt").write_text("0 3\n")
    files = [Download(f"{url}/{name}", name) for name in ("train.txt", "test.txt")]
    publish(monkeypatch, "gowalla", *files, content_hash="0" * 64)
    with pytest.raises(DownloadError, match="wrong content: expected hash 000"):
        fetch("gowalla")
    cache = places("gowalla")["cache"]
    assert list(cache.parent.iterdir()) == []
    publish(monkeypatch, "gowalla", *files)
    right = load("gowalla").content_hash
    for path in cache.iterdir():
        path.unlink()
    publish(monkeypatch, "gowalla", *files, content_hash=right)
    assert fetch("gowalla") == cache


def test_fetch_checks_files_of_an_archive(home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = home
    with zipfile.ZipFile(folder / "steam.zip", "w") as bundle:
        bundle.writestr("steam-200k.csv", "1,Dota 2,purchase,1.0,0\n")
    publish(monkeypatch, "steam-200k", replace(CATALOG["steam-200k"].downloads[0], url=f"{url}/steam.zip"))
    with pytest.raises(DownloadError, match=r"steam-200k\.csv has the wrong sha256: expected 2464a568.*found"):
        fetch("steam-200k")
    (folder / "steam.zip").write_text("<html>log in first</html>")
    with pytest.raises(DownloadError, match="not a sound zip archive"):
        fetch("steam-200k")
    assert locate("steam-200k") is None


def test_fetch_into_a_cache_that_cannot_be_written(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="set DPCML_CACHE"):
        fetch("gowalla")
