"""Downloads from a real HTTP server on the loopback interface: single files, and named sets as a whole."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dpcml.data.datasets import DatasetStore, load_dataset
from dpcml.data.download import CHUNK, Progress, download
from dpcml.data.named_sets import DATASETS, Download, NamedDataset
from dpcml.utils.errors import DownloadError

BODY = bytes(range(256)) * 1200  # 307,200 bytes: several blocks
FILE = Download("", "a.bin", f"sha256:{hashlib.sha256(BODY).hexdigest()}")


class Remote(ThreadingHTTPServer):
    """A server of one file whose behaviour the test sets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = BODY
        self.etag: str | None = '"v1"'
        self.ranges = True
        self.claimed: int | None = None  # a Content-Length other than the true one
        self.cut_after: list[int] = []  # bytes to send before closing, one entry per answer
        self.states: list[int] = []  # HTTP states to answer with first
        self.asked: list[dict[str, str]] = []  # headers of each request

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class Handler(BaseHTTPRequestHandler):
    server: Remote

    def do_GET(self) -> None:
        remote = self.server
        remote.asked.append(dict(self.headers))
        state = remote.states.pop(0) if remote.states else 200
        if state != 200:
            self.send_error(state)
            return
        start = self.first_byte()
        if start and start >= len(remote.body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(remote.body)}")
            self.end_headers()
            return
        rest = remote.body[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest) if remote.claimed is None else remote.claimed))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(remote.body) - 1}/{len(remote.body)}")
        if remote.etag:
            self.send_header("ETag", remote.etag)
        self.end_headers()
        self.wfile.write(rest[: remote.cut_after.pop(0)] if remote.cut_after else rest)

    def first_byte(self) -> int:
        wanted = self.headers.get("Range")
        condition = self.headers.get("If-Range")
        if not wanted or not self.server.ranges or (condition and condition != self.server.etag):
            return 0
        return int(wanted.removeprefix("bytes=").rstrip("-"))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def remote(data: Path) -> Iterator[Remote]:
    with Remote() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def get(remote: Remote, folder: Path, part: Download = FILE, progress: Progress | None = None) -> bytes:
    download(replace(part, url=remote.url), folder, progress)
    return (folder / part.file).read_bytes()


def test_whole_file(remote: Remote, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    assert get(remote, tmp_path / "new", progress=lambda *at: seen.append(at)) == BODY
    assert names(tmp_path / "new") == ["a.bin"]
    assert (seen[0], seen[-1]) == ((0, len(BODY)), (len(BODY), len(BODY)))


def test_a_file_in_place_is_fetched_again_only_if_it_is_wrong(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"something else")
    for _ in range(2):
        assert get(remote, tmp_path) == BODY
    assert len(remote.asked) == 1


def test_goes_on_after_cut_connections(remote: Remote, tmp_path: Path) -> None:
    remote.cut_after = [2 * CHUNK, CHUNK]
    assert get(remote, tmp_path) == BODY
    assert [asked.get("Range") for asked in remote.asked] == [None, f"bytes={2 * CHUNK}-", f"bytes={3 * CHUNK}-"]
    assert remote.asked[1]["If-Range"] == '"v1"'


def cut(remote: Remote, folder: Path, monkeypatch: pytest.MonkeyPatch, part: Download = FILE) -> None:
    """Break a download off for good after 65,536 bytes."""
    remote.cut_after = [CHUNK]
    with monkeypatch.context() as patch:
        patch.setattr("dpcml.data.download.RETRIES", 0)
        with pytest.raises(DownloadError, match=r"65,536 bytes are kept in .*a\.bin\.part: run it again to go on"):
            get(remote, folder, part)
    assert names(folder) == ["a.bin.part", "a.bin.part.etag"]


def test_a_later_call_goes_on(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(remote, tmp_path, monkeypatch)
    assert get(remote, tmp_path) == BODY
    assert remote.asked[1]["Range"] == "bytes=65536-"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("etag", ['"v1"', '"v2"'])
def test_a_file_that_changed_meanwhile_is_not_mixed(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etag: str
) -> None:
    part = Download("", "a.bin")
    cut(remote, tmp_path, monkeypatch, part)
    remote.body, remote.etag = BODY[:50_000] if etag == '"v1"' else BODY[::-1], etag
    assert get(remote, tmp_path, part) == remote.body


def test_nothing_is_continued_without_ranges_or_validator(remote: Remote, tmp_path: Path) -> None:
    for ranges, etag in ((False, '"v1"'), (True, None), (True, 'W/"v1"')):
        remote.ranges, remote.etag, remote.cut_after, remote.asked = ranges, etag, [100_000], []
        (tmp_path / "a.bin").unlink(missing_ok=True)
        assert get(remote, tmp_path) == BODY
        assert len(remote.asked) == 2
        assert ranges is False or "Range" not in remote.asked[1]


def test_killed_before_the_rename(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").write_bytes(BODY)
    (tmp_path / "a.bin.part.etag").write_text('"v1"')
    assert get(remote, tmp_path) == BODY


@pytest.mark.parametrize("name", ["sha256", "md5"])
def test_wrong_checksum_removes_what_came(remote: Remote, tmp_path: Path, name: str) -> None:
    found = hashlib.new(name, BODY).hexdigest()
    expected = "0" * len(found)
    with pytest.raises(DownloadError, match=f"expected {name}:{expected} but got {found}"):
        get(remote, tmp_path, Download("", "a.bin", f"{name}:{expected}"))
    assert names(tmp_path) == []


def test_not_found_is_final(remote: Remote, tmp_path: Path) -> None:
    remote.states = [404]
    with pytest.raises(DownloadError, match=r"404 .*Not Found.*; check the address"):
        get(remote, tmp_path)
    assert len(remote.asked) == 1
    assert names(tmp_path) == []


def test_busy_server_is_asked_again(remote: Remote, tmp_path: Path) -> None:
    remote.states = [503, 500]
    assert get(remote, tmp_path) == BODY


def test_wrong_length(remote: Remote, tmp_path: Path) -> None:
    remote.claimed, remote.ranges = len(BODY) + 5, False
    with pytest.raises(DownloadError, match="262,144 bytes are kept"):
        get(remote, tmp_path)
    assert not (tmp_path / "a.bin").exists()
    assert len(remote.asked) == 4


def test_nobody_listens(data: Path, tmp_path: Path) -> None:
    with Remote() as server:
        url = server.url
    with pytest.raises(DownloadError, match=r"the download failed .*check the connection"):
        download(replace(FILE, url=url), tmp_path, None)
    assert names(tmp_path) == []


@pytest.mark.parametrize("damage", ["text", "cut", "flipped", "evil", "other"])
def test_archives_that_are_no_good(remote: Remote, tmp_path: Path, damage: str) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        path = {"evil": "../a.dat", "other": "b.dat"}.get(damage, "a.dat")
        bundle.writestr(path, "".join(str(i**3) for i in range(5000)))
    whole = (tmp_path / "b.zip").read_bytes()
    (tmp_path / "b.zip").unlink()
    flipped = whole[:3000] + bytes(255 - byte for byte in whole[3000:3100]) + whole[3100:]
    bodies = {"text": b"<html>log in first</html>", "cut": whole[: len(whole) // 2], "flipped": flipped}
    remote.body = bodies.get(damage, whole)
    part = Download("", "a.zip", members={"a.dat": None})
    if damage == "evil":  # it stays within the folder
        download(replace(part, url=remote.url), tmp_path / "in", None)
        assert (names(tmp_path), names(tmp_path / "in")) == (["in"], ["a.dat"])
        return
    message = "no file 'a.dat' in the archive; it holds b.dat" if damage == "other" else "not a sound zip archive"
    with pytest.raises(DownloadError, match=message):
        download(replace(part, url=remote.url), tmp_path / "in", None)
    assert names(tmp_path / "in") == []


@pytest.mark.parametrize("lies", [False, True])
def test_a_zip_bomb_is_not_unpacked(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lies: bool
) -> None:
    """Finding 19: the size that an archive declares is bounded, and no member unpacks to more than it declares."""
    monkeypatch.setattr("dpcml.data.download.MAX_UNPACKED", 100_000)
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("a.dat", bytes(1_000_000))
    remote.body = (tmp_path / "b.zip").read_bytes()
    (tmp_path / "b.zip").unlink()
    if lies:
        remote.body = remote.body.replace((1_000_000).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    message = "Bad CRC-32" if lies else "it unpacks to 1,000,000 bytes, at most 100,000 are taken"
    with pytest.raises(DownloadError, match=message):
        download(Download(remote.url, "a.zip", members={"a.dat": None}), tmp_path / "in", None)
    assert names(tmp_path / "in") == []


@pytest.mark.parametrize("claimed", [None, 10**15])
def test_a_download_without_end_is_broken_off(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int | None
) -> None:
    monkeypatch.setattr("dpcml.data.download.MAX_DOWNLOAD", 3 * CHUNK)
    remote.claimed = claimed
    with pytest.raises(DownloadError, match="larger than 196,608 bytes"):
        get(remote, tmp_path)
    assert names(tmp_path) == []


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
) -> NamedDataset:
    entry = replace(DATASETS[name], downloads=downloads, content_hash=content_hash)
    monkeypatch.setitem(DATASETS._entries, name, entry)
    return entry


def test_fetch_unpacks_an_archive(home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = home
    ratings = "".join(f"{user}::{movie}::5::978300760\n" for user in (1, 2, 7) for movie in range(1, 20))
    with zipfile.ZipFile(folder / "ml.zip", "w") as bundle:
        bundle.writestr("ml-1m/ratings.dat", ratings)
        bundle.writestr("ml-1m/movies.dat", "1::Toy Story (1995)::Animation\n")
        bundle.writestr("ml-1m/README", "?")
    md5 = hashlib.md5((folder / "ml.zip").read_bytes()).hexdigest()
    members = DATASETS["ml-1m"].downloads[0].members
    publish(monkeypatch, "ml-1m", Download(f"{url}/ml.zip", "ml.zip", f"md5:{md5}", members))
    seen: list[int] = []
    found = load_dataset("ml-1m", progress=lambda done, total: seen.append(done))
    assert found.n_users == 3
    assert seen
    cache = DatasetStore().folders("ml-1m")["cache"]
    assert DatasetStore().locate("ml-1m") == DatasetStore().fetch("ml-1m") == cache
    assert sorted(path.name for path in cache.iterdir()) == ["movies.dat", "ratings.dat"]
    assert [path.name for path in cache.parent.iterdir()] == ["ml-1m"]


@pytest.mark.parametrize("there", [False, True])
def test_a_fetch_that_is_killed_while_it_moves_files_leaves_no_set_that_looks_whole(
    home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    folder, url = home
    for name in ("movies.dat", "ratings.dat", "users.dat"):
        (folder / name).write_text("".join(f"{user}::{movie}::5::9\n" for user in (1, 2, 7) for movie in range(1, 20)))
    publish(
        monkeypatch, "ml-1m", *(Download(f"{url}/{name}", name) for name in ("ratings.dat", "users.dat", "movies.dat"))
    )
    target, moved = DatasetStore().folders("ml-1m")["cache"], list[str]()
    if there:  # with a file of the user's
        target.mkdir(parents=True)
        (target / "notes").touch()
    move = Path.replace

    def killed(source: Path, to: Path) -> Path:
        if source.parent.name != ".ml-1m" and source.name != ".ml-1m":
            return move(source, to)  # a part of the download
        assert DatasetStore().locate("ml-1m") is None
        moved.append(source.name)
        return move(source, to)

    monkeypatch.setattr(Path, "replace", killed)
    DatasetStore().fetch("ml-1m")
    assert moved == (["movies.dat", "users.dat", "ratings.dat"] if there else [".ml-1m"])
    assert {"movies.dat", "ratings.dat", "users.dat"} <= {file.name for file in target.iterdir()}


def test_fetch_goes_on_after_a_failure(home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = home
    (folder / "train.txt").write_text("0 1 2\n")
    publish(monkeypatch, "gowalla", *(Download(f"{url}/{name}", name) for name in ("train.txt", "test.txt")))
    with pytest.raises(DownloadError, match="404"):
        DatasetStore().fetch("gowalla")
    assert DatasetStore().locate("gowalla") is None
    (folder / "test.txt").write_text("0 3\n")
    (folder / "train.txt").unlink()  # it is here already
    assert sorted(path.name for path in DatasetStore().fetch("gowalla").iterdir()) == ["test.txt", "train.txt"]


def test_fetch_checks_content_where_no_checksum_is_known(
    home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = home
    (folder / "train.txt").write_text("0 1 2\n")
    (folder / "test.txt").write_text("0 3\n")
    files = [Download(f"{url}/{name}", name) for name in ("train.txt", "test.txt")]
    publish(monkeypatch, "gowalla", *files, content_hash="0" * 64)
    with pytest.raises(DownloadError, match="wrong content: expected hash 000"):
        DatasetStore().fetch("gowalla")
    cache = DatasetStore().folders("gowalla")["cache"]
    assert list(cache.parent.iterdir()) == []
    publish(monkeypatch, "gowalla", *files)
    right = load_dataset("gowalla").content_hash
    for path in cache.iterdir():
        path.unlink()
    publish(monkeypatch, "gowalla", *files, content_hash=right)
    assert DatasetStore().fetch("gowalla") == cache


def test_fetch_checks_files_of_an_archive(home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = home
    with zipfile.ZipFile(folder / "steam.zip", "w") as bundle:
        bundle.writestr("steam-200k.csv", "1,Dota 2,purchase,1.0,0\n")
    publish(monkeypatch, "steam-200k", replace(DATASETS["steam-200k"].downloads[0], url=f"{url}/steam.zip"))
    with pytest.raises(DownloadError, match=r"steam-200k\.csv does not match the known hash: expected sha256:2464a568"):
        DatasetStore().fetch("steam-200k")
    (folder / "steam.zip").write_text("<html>log in first</html>")
    with pytest.raises(DownloadError, match="not a sound zip archive"):
        DatasetStore().fetch("steam-200k")
    assert DatasetStore().locate("steam-200k") is None


def test_fetch_into_a_cache_that_cannot_be_written(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="set DPCML_CACHE"):
        DatasetStore().fetch("gowalla")
