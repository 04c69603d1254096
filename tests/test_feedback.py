"""The feedback journal: nothing that was acknowledged is lost, nothing damaged is believed."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from dpcml.feedback import FIRST_LINE, Feedback, FeedbackJournal, JournalFullError, latest, read_journal
from dpcml.utils.errors import DataError, ParameterError


def items(journal):
    return [one.item for one in journal.read_new()]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "journal"


def filled(file, count=5):
    journal = FeedbackJournal(file)
    for item in range(count):
        journal.append(Feedback("ann", item, "like"))
    return journal


def test_entries_come_back_in_order_and_once(file):
    journal = filled(file)
    assert items(journal) == [0, 1, 2, 3, 4]
    assert items(journal) == []
    other = FeedbackJournal(file)
    other.append(Feedback("bob", 9, "hide"))
    assert items(journal) == [9], "written by another"
    assert items(other) == [0, 1, 2, 3, 4, 9]


@pytest.mark.parametrize("cut", range(2, 60, 7))
def test_an_entry_that_was_cut_is_left_out_and_the_next_one_is_whole(file, cut):
    filled(file).close()
    data = file.read_bytes()
    file.write_bytes(data[:-cut])
    journal = FeedbackJournal(file)
    journal.append(Feedback("ann", 77, "like"))
    assert items(journal) == [0, 1, 2, 3, 77]
    assert journal.damaged == 1


def test_no_flipped_bit_is_believed(file):
    filled(file, 3).close()
    data = file.read_bytes()
    for place in range(len(FIRST_LINE), len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        file.write_bytes(damaged)
        found, lines = read_journal(file)
        assert lines >= 1
        assert {one.item for one in found} < {0, 1, 2}
        assert len(found) >= 1


def test_what_was_acknowledged_survives_a_kill(file):
    """The writer is killed at any moment; each entry that it reported is there."""
    code = (
        "import sys\nfrom dpcml.feedback import *\njournal = FeedbackJournal(sys.argv[1])\n"
        "for item in range(10**6):\n    journal.append(Feedback('ann', item, 'like'))\n    print(item, flush=True)\n"
    )
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE) as writer:
            said = [writer.stdout.readline() for _ in range(20)]
            os.kill(writer.pid, signal.SIGKILL)
            said += writer.stdout.read().splitlines()
        acknowledged = int(said[-1])
        found, damaged = read_journal(file)
        assert damaged <= 2
        last = max(k for k, one in enumerate(found) if one.item == 0)  # where this writer began
        assert [one.item for one in found[last:]][: acknowledged + 1] == list(range(acknowledged + 1))


def test_several_processes_write_at_once(file):
    code = (
        "import sys\nfrom dpcml.feedback import *\njournal = FeedbackJournal(sys.argv[1])\n"
        "for item in range(100):\n    journal.append(Feedback(sys.argv[2], item, 'like'))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(file), name]) for name in ("ann", "bob")]
    assert [one.wait() for one in writers] == [0, 0]
    found, damaged = read_journal(file)
    assert damaged == 0
    for name in ("ann", "bob"):
        assert [one.item for one in found if one.user == name] == list(range(100))


def test_it_is_bounded(file):
    filled(file, 3).close()
    size = file.stat().st_size
    journal = FeedbackJournal(file, max_bytes=size)
    with pytest.raises(JournalFullError, match="dpcml update"):
        journal.append(Feedback("ann", 3, "like"))
    assert file.stat().st_size == size
    assert items(journal) == [0, 1, 2]


@pytest.mark.parametrize("later", ["the entry once more", "a longer name", "no entry"])
def test_an_entry_that_was_read_but_not_kept_is_taken_back(file, monkeypatch, later):
    """The disk refuses an entry that another thread, or process, has read; readers notice, however long the next is."""
    journal, other = filled(file, 3), FeedbackJournal(file)
    assert items(journal) == items(other) == [0, 1, 2]

    def refuse(number):
        assert items(journal) == items(other) == [7], "it is in the file for a moment"
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        with pytest.raises(DataError, match="cannot be written"):
            journal.append(Feedback("ann", 7, "like", time=1.0))
    if later != "no entry":
        journal.append(Feedback("ann" if "once" in later else "a" * 300, 8, "like", time=1.0))
    expected = [0, 1, 2] if later == "no entry" else [0, 1, 2, 8]
    for reader in (journal, other):
        assert (items(reader), reader.restarts, reader.damaged) == (expected, 1, 0)
        assert (items(reader), reader.restarts) == ([], 1)
    journal.append(Feedback("bob", 9, "like"))
    assert items(journal) == items(other) == [9]


@pytest.mark.parametrize("size", [0, 5, len(FIRST_LINE), 100])
def test_a_journal_that_is_cut_while_it_is_open_is_read_again(file, size):
    journal = filled(file)
    assert items(journal) == [0, 1, 2, 3, 4]
    os.truncate(file, size)
    left = [0] if size == 100 else []
    assert items(journal) == left
    if size == 5:  # no journal any more; nothing in it is believed
        return
    journal.append(Feedback("ann", 7, "like"))
    assert items(journal) == [7]
    found, damaged = read_journal(file)
    assert ([one.item for one in found], damaged) == ([*left, 7], int(size == 100))


def test_another_file_is_not_written_to(file):
    file.write_text("user,item\n1,2\n")
    for opening in (FeedbackJournal, read_journal):
        with pytest.raises(DataError, match="is no feedback journal"):
            opening(file)
    assert file.read_text() == "user,item\n1,2\n"


@pytest.mark.parametrize("start", [0, 1, 5, len(FIRST_LINE) - 1])
def test_a_journal_that_was_cut_while_it_was_made_is_made_again(file, start):
    file.write_bytes(FIRST_LINE[:start])
    FeedbackJournal(file).append(Feedback(1, 2, "hide"))
    assert len(read_journal(file)[0]) == 1


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DataError, match="cannot be opened"):
        FeedbackJournal(tmp_path / "none" / "journal")


def test_only_the_owner_can_read_it(file):
    FeedbackJournal(file)
    assert file.stat().st_mode & 0o077 == 0


def test_unknown_actions_are_refused():
    with pytest.raises(ParameterError, match="action='love'"):
        Feedback(1, 2, "love")


def test_the_last_word_counts():
    said = [Feedback(1, 2, "like"), Feedback("1", "2", "hide"), Feedback(1, 3, "like"), Feedback(1, 3, "clear")]
    assert [one.action for one in latest(said).values()] == ["hide"]
