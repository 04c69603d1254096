"""Downloads of named data sets: pooch fetches, checks and unpacks; broken downloads are resumed."""

from __future__ import annotations

import shutil
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pooch
import requests

from dpcml.data.named_sets import Download
from dpcml.utils.errors import DownloadError

CHUNK = 1 << 16  # bytes read at once
RETRIES = 3  # further attempts after one that broke off
TIMEOUT = 30  # seconds without a byte after which an attempt has broken off
MAX_DOWNLOAD, MAX_UNPACKED = 4 * 10**9, 16 * 10**9  # bytes; many times the largest named set
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}  # HTTP states that a later attempt may not meet
Progress = Callable[[int, int | None], None]  # bytes done, bytes in total if known


def download(part: Download, folder: Path, progress: Progress | None) -> None:
    """Download a file of a set into a folder; of an archive, leave only the members that are needed."""
    if part.members and all((folder / name).is_file() for name in part.members):
        return  # unpacked by an earlier call that failed later
    target = folder / part.file
    downloader = ResumingDownloader(target, progress)
    processor = _check_and_unzip(part) if part.members else None
    try:
        pooch.get_logger().setLevel("WARNING")
        found = pooch.retrieve(part.url, part.known_hash, part.file, folder, processor, downloader)
        if part.members:
            _take_members(part, [Path(path) for path in found], folder)
    except requests.HTTPError as error:
        raise DownloadError(f"{part.url}: {error}; check the address, or fetch it by hand") from None
    except requests.RequestException as error:
        raise DownloadError(f"{part.url}: the download failed ({error}); {downloader.way_out()}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        target.unlink(missing_ok=True)
        raise DownloadError(f"{part.url}: not a sound zip archive ({error}); run it again to start anew") from None
    except ValueError as error:  # pooch's word on a wrong checksum
        raise DownloadError(f"{part.url}: {error}") from None
    finally:
        shutil.rmtree(folder / f"{part.file}.unzip", ignore_errors=True)


def _check_and_unzip(part: Download) -> Callable[..., list[str]]:
    """Return pooch's unpacking, after a look at what the archive would unpack to.

    The zip module stops at the size that an archive declares for a member, so that the declared sizes can be trusted.
    """
    unzip = pooch.Unzip(extract_dir=f"{part.file}.unzip")

    def process(archive: str, action: str, store: Any) -> list[str]:
        with zipfile.ZipFile(archive) as packed:
            size = sum(member.file_size for member in packed.infolist())
        if size > MAX_UNPACKED:
            raise zipfile.BadZipFile(f"it unpacks to {size:,} bytes, at most {MAX_UNPACKED:,} are taken")
        found: list[str] = unzip(archive, action, store)
        return found

    return process


def _take_members(part: Download, found: list[Path], folder: Path) -> None:
    """Move the members of an archive that are needed into a folder, checked, and remove the archive."""
    (folder / part.file).unlink()
    for name, known_hash in part.members.items():
        path = next((path for path in found if path.name == name), None)
        if path is None:
            held = ", ".join(path.name for path in found[:8]) or "nothing"
            raise ValueError(f"no file {name!r} in the archive; it holds {held}")
        if known_hash and pooch.file_hash(str(path)) != known_hash.removeprefix("sha256:"):
            raise ValueError(f"{name} does not match the known hash: expected {known_hash}; run it again")
        path.replace(folder / name)


class ResumingDownloader:
    """A downloader for pooch that goes on where an earlier attempt or process broke off, which pooch cannot.

    The bytes gather in ``<target>.part``, with the file's ETag or date beside it: the server sends the rest
    only if its file is still the same.

    Parameters
    ----------
    target
        Where pooch will put the file.
    progress
        Called with the bytes done and the bytes in total (None if unknown).
    """

    def __init__(self, target: Path, progress: Progress | None = None) -> None:
        self.part = target.with_name(f"{target.name}.part")
        self.validator = target.with_name(f"{target.name}.part.etag")
        self.progress = progress or (lambda done, total: None)

    def __call__(self, url: str, output_file: str, pooch: Any, check_only: bool = False) -> None:
        """Bring the partial file to its full length and move it to ``output_file``."""
        for attempt in range(RETRIES + 1):
            try:
                self._attempt(url)
                break
            except requests.RequestException as error:
                answer = error.response
                # Nobody there is final; a connection that breaks off or a busy server may come back.
                again = answer.status_code in TRANSIENT if answer is not None else self._size() > 0
                if attempt == RETRIES or not again:
                    raise
            time.sleep(2**attempt)
        shutil.move(self.part, output_file)
        self.validator.unlink(missing_ok=True)

    def way_out(self) -> str:
        """Return what a user can do after a failure."""
        if kept := self._size():
            return f"{kept:,} bytes are kept in {self.part}: run it again to go on"
        return "check the connection and run it again"

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _attempt(self, url: str) -> None:
        headers = {"User-Agent": "dpcml", "Accept-Encoding": "identity"}
        if self._size() and self.validator.is_file():
            headers |= {"Range": f"bytes={self._size()}-", "If-Range": self.validator.read_text()}
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code == 416:  # nothing is missing, or the file became shorter: start anew
                self.part.unlink()
                return self._attempt(url)
            answer.raise_for_status()
            done = self._size() if answer.status_code == 206 else 0
            length = answer.headers.get("Content-Length")
            total = None if length is None else done + int(length)
            self._check_size(url, total or 0)
            if not done:
                self._remember(answer.headers.get("ETag", ""), answer.headers.get("Last-Modified", ""))
            with self.part.open("ab" if done else "wb") as file:
                self.progress(done, total)
                for chunk in answer.iter_content(CHUNK):
                    done += file.write(chunk)
                    self._check_size(url, done)
                    self.progress(done, total)
        if total is not None and done < total:
            raise requests.ConnectionError(f"the connection broke off after {done:,} of {total:,} bytes")
        return None

    def _check_size(self, url: str, size: int) -> None:
        if size > MAX_DOWNLOAD:
            self.part.unlink(missing_ok=True)
            self.validator.unlink(missing_ok=True)
            raise DownloadError(
                f"{url}: larger than {MAX_DOWNLOAD:,} bytes, as no known data set is; check the address"
            )

    def _remember(self, etag: str, date: str) -> None:
        """Keep what identifies the file on the server; a weak ETag cannot."""
        if known := etag if etag.startswith('"') else date:
            self.validator.write_text(known)
        else:
            self.validator.unlink(missing_ok=True)
