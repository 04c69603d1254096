"""The downloader against a real HTTP server on the loopback interface."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dpcml.data.catalog.archive import unpack
from dpcml.data.catalog.download import download
from dpcml.utils.errors import DataError, DownloadError, ParameterError

BODY = bytes(range(256)) * 1200  # 307,200 bytes: several blocks
SHA256 = hashlib.sha256(BODY).hexdigest()


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
def remote() -> Iterator[Remote]:
    with Remote() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_whole_file(remote: Remote, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = download(remote.url, tmp_path / "new" / "a.bin", sha256=SHA256, progress=lambda *at: seen.append(at))
    assert path.read_bytes() == BODY
    assert names(path.parent) == ["a.bin"]
    assert seen[0] == (0, len(BODY))
    assert seen[-1] == (len(BODY), len(BODY))


def test_a_file_in_place_is_not_fetched_again(remote: Remote, tmp_path: Path) -> None:
    for _ in range(2):
        download(remote.url, tmp_path / "a.bin", sha256=SHA256)
    assert len(remote.asked) == 1


def test_a_wrong_file_in_place_is_fetched_again(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"something else")
    assert download(remote.url, tmp_path / "a.bin", sha256=SHA256).read_bytes() == BODY


def test_goes_on_after_cut_connections(remote: Remote, tmp_path: Path) -> None:
    remote.cut_after = [100_000, 70_000]
    path = download(remote.url, tmp_path / "a.bin", sha256=SHA256, pause=0)
    assert path.read_bytes() == BODY
    assert [asked.get("Range") for asked in remote.asked] == [None, "bytes=100000-", "bytes=170000-"]
    assert remote.asked[1]["If-Range"] == '"v1"'


def test_a_later_call_goes_on_where_the_first_gave_up(remote: Remote, tmp_path: Path) -> None:
    remote.cut_after = [123_456]
    with pytest.raises(DownloadError, match=r"broke off after 123,456 of 307,200 bytes.*run it again to go on"):
        download(remote.url, tmp_path / "a.bin", retries=0)
    assert names(tmp_path) == ["a.bin.part", "a.bin.part.json"]
    assert download(remote.url, tmp_path / "a.bin").read_bytes() == BODY
    assert remote.asked[1]["Range"] == "bytes=123456-"
    assert names(tmp_path) == ["a.bin"]


def test_server_without_ranges_starts_over(remote: Remote, tmp_path: Path) -> None:
    remote.ranges, remote.cut_after = False, [100_000]
    assert download(remote.url, tmp_path / "a.bin", pause=0).read_bytes() == BODY


def test_file_that_changed_meanwhile_is_not_mixed(remote: Remote, tmp_path: Path) -> None:
    remote.cut_after = [100_000]
    with pytest.raises(DownloadError):
        download(remote.url, tmp_path / "a.bin", retries=0)
    remote.body, remote.etag = BODY[::-1], '"v2"'
    assert download(remote.url, tmp_path / "a.bin").read_bytes() == BODY[::-1]


def test_file_that_became_shorter(remote: Remote, tmp_path: Path) -> None:
    remote.cut_after = [100_000]
    with pytest.raises(DownloadError):
        download(remote.url, tmp_path / "a.bin", retries=0)
    remote.body = BODY[:50_000]  # the server forgot to change its ETag
    assert download(remote.url, tmp_path / "a.bin").read_bytes() == BODY[:50_000]


def test_without_validator_nothing_is_continued_unless_a_checksum_can_tell(remote: Remote, tmp_path: Path) -> None:
    remote.etag = None
    for options, ranges in (({}, [None, None]), ({"sha256": SHA256}, [None, "bytes=100000-"])):
        remote.cut_after, remote.asked = [100_000], []
        path = tmp_path / f"{len(options)}.bin"
        assert download(remote.url, path, pause=0, **options).read_bytes() == BODY
        assert [asked.get("Range") for asked in remote.asked] == ranges


def test_mixed_bytes_are_found_by_the_checksum_and_fetched_anew(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").write_bytes(b"x" * 100_000)
    assert download(remote.url, tmp_path / "a.bin", sha256=SHA256).read_bytes() == BODY


def test_killed_before_the_rename(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "a.bin.part").write_bytes(BODY)
    assert download(remote.url, tmp_path / "a.bin", sha256=SHA256).read_bytes() == BODY
    assert remote.asked[0]["Range"] == f"bytes={len(BODY)}-"
    assert len(remote.asked) == 1


@pytest.mark.parametrize("name", ["sha256", "md5"])
def test_wrong_checksum_removes_what_came(remote: Remote, tmp_path: Path, name: str) -> None:
    found = hashlib.new(name, BODY).hexdigest()
    expected = "0" * len(found)
    with pytest.raises(DownloadError, match=f"wrong {name}: expected {expected}, found {found}"):
        download(remote.url, tmp_path / "a.bin", **{name: expected})
    assert names(tmp_path) == []


def test_not_found_is_final(remote: Remote, tmp_path: Path) -> None:
    remote.states = [404]
    with pytest.raises(DownloadError, match=r"404 Not Found; check the address"):
        download(remote.url, tmp_path / "a.bin", pause=0)
    assert len(remote.asked) == 1
    assert names(tmp_path) == []


def test_busy_server_is_asked_again(remote: Remote, tmp_path: Path) -> None:
    remote.states = [503, 500]
    assert download(remote.url, tmp_path / "a.bin", pause=0).read_bytes() == BODY


def test_wrong_length(remote: Remote, tmp_path: Path) -> None:
    remote.claimed, remote.ranges = len(BODY) + 5, False
    with pytest.raises(DownloadError, match=r"after 307,200 of 307,205 bytes"):
        download(remote.url, tmp_path / "a.bin", retries=1, pause=0)
    assert not (tmp_path / "a.bin").exists()
    assert len(remote.asked) == 2


def test_nobody_listens(tmp_path: Path) -> None:
    with Remote() as server:
        url = server.url
    with pytest.raises(DownloadError, match=r"no answer .*check the connection"):
        download(url, tmp_path / "a.bin", retries=1, pause=0)
    assert names(tmp_path) == []


def test_target_that_cannot_be_written(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match=r"a\.bin: cannot be written"):
        download(remote.url, tmp_path / "file" / "a.bin")


def test_an_empty_file_is_a_file(remote: Remote, tmp_path: Path) -> None:
    remote.body = b""
    assert download(remote.url, tmp_path / "a.bin").read_bytes() == b""


@pytest.mark.parametrize(
    ("options", "message"),
    [({"retries": -1}, "retries=-1: must be at least 0"), ({"url": "file:///etc/hostname"}, "only http and https")],
)
def test_bad_parameters(remote: Remote, tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        download(**{"url": remote.url, "target": tmp_path / "a.bin", **options})  # type: ignore[arg-type]


def test_concurrent_calls_fetch_once(remote: Remote, tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        paths = list(pool.map(lambda _: download(remote.url, tmp_path / "a.bin", sha256=SHA256), range(6)))
    assert {path.read_bytes() for path in paths} == {BODY}
    assert len(remote.asked) == 1
    assert names(tmp_path) == ["a.bin"]


def archive(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in members.items():
            bundle.writestr(name, text)
    return path


def test_unpack_takes_only_what_is_named(tmp_path: Path) -> None:
    bundle = archive(tmp_path / "a.zip", {"set/ratings.dat": "r", "set/old-ratings.dat": "o", "set/README": "?"})
    folder = unpack(bundle, {"ratings.dat": "ratings.dat"}, tmp_path / "out")
    assert names(folder) == ["ratings.dat"]
    assert (folder / "ratings.dat").read_text() == "r"


def test_unpack_into_a_folder_that_exists(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    (tmp_path / "out" / "a.dat").write_text("old")
    unpack(archive(tmp_path / "a.zip", {"a.dat": "new"}), {"a.dat": "a.dat"}, tmp_path / "out")
    assert names(tmp_path / "out") == ["a.dat", "mine.txt"]
    assert (tmp_path / "out" / "a.dat").read_text() == "new"


@pytest.mark.parametrize("evil", ["../a.dat", "x/../../a.dat"])
def test_unpack_never_leaves_its_folder(tmp_path: Path, evil: str) -> None:
    (tmp_path / "in").mkdir()
    bundle = archive(tmp_path / "in" / "a.zip", {evil: "evil"})
    with pytest.raises(DataError, match=r"no file 'a\.dat' in the archive"):
        unpack(bundle, {"a.dat": "a.dat"}, tmp_path / "in" / "out")
    assert names(tmp_path) == ["in"]
    assert names(tmp_path / "in") == ["a.zip"]
    with pytest.raises(ParameterError, match="plain name"):
        unpack(bundle, {"a.dat": "../a.dat"}, tmp_path / "in" / "out")


@pytest.mark.parametrize("damage", ["text", "cut", "flipped"])
def test_unpack_of_a_damaged_archive(tmp_path: Path, damage: str) -> None:
    bundle = archive(tmp_path / "a.zip", {"a.dat": "".join(str(i**3) for i in range(5000))})
    whole = bundle.read_bytes()
    flipped = whole[:3000] + bytes(255 - byte for byte in whole[3000:3100]) + whole[3100:]
    bundle.write_bytes(
        {"text": b"<html>log in first</html>", "cut": whole[: len(whole) // 2], "flipped": flipped}[damage]
    )
    with pytest.raises(DataError, match=r"a\.zip: not a sound zip archive"):
        unpack(bundle, {"a.dat": "a.dat"}, tmp_path / "out")
    assert names(tmp_path) == ["a.zip"]
