"""Lists that arrive together are made together: by the event loop where that is quick, on a thread otherwise."""

import asyncio
import threading
import time

import pytest

from dpcml.serving import direct
from dpcml.serving.direct import ListBatcher, ListOptions
from dpcml.serving.model_store import LoadedModel

PLAIN = ListOptions(10, True, 0.0, False)


@pytest.fixture
def made(monkeypatch):
    """Batches that are made, each as its rows and whether the event loop made it; and the seconds that they take."""
    calls, seconds = [], {PLAIN: 0.0}

    def lists(loaded, rows, options):
        calls.append((rows, threading.current_thread() is threading.main_thread()))
        time.sleep(seconds[options])
        return [b"%d" % row for row in rows]

    monkeypatch.setattr(direct, "_lists", lists)
    return calls, seconds


@pytest.fixture(scope="module")
def loaded(models):
    return LoadedModel.load(models["itemknn"])


def ask(batcher, loaded, rounds):
    async def all_rounds():
        for count, options in rounds:
            answers = await asyncio.gather(*(batcher.make(loaded, row, options) for row in range(count)))
            assert answers == [b"%d" % row for row in range(count)]

    try:
        asyncio.run(all_rounds())
    finally:
        batcher.close()


def test_quick_lists_are_made_by_the_event_loop_after_a_first_time(made, loaded, monkeypatch):
    monkeypatch.setattr(direct, "IN_LOOP_SECONDS", 60.0)  # a busy machine may delay the first one
    ask(ListBatcher(256), loaded, [(1, PLAIN)] * 3)
    assert [in_loop for _, in_loop in made[0]] == [False, True, True]


def test_slow_lists_are_made_on_a_thread(made, loaded):
    made[1][PLAIN] = 2 * direct.IN_LOOP_SECONDS
    ask(ListBatcher(256), loaded, [(1, PLAIN)] * 3)
    assert [in_loop for _, in_loop in made[0]] == [False, False, False]


def test_one_late_list_does_not_send_all_others_to_the_thread(loaded):
    times = direct._ListTimes()
    asked = [direct._Request(loaded, 0, PLAIN, None)]
    assert times.expected(asked) == float("inf")
    times.add(loaded, PLAIN, 1, 0.001)
    times.add(loaded, PLAIN, 1, 0.100)
    assert times.expected(asked) == 0.001
    assert times.expected(asked * 3) == pytest.approx(0.003)
    assert times.expected([direct._Request(loaded, 0, PLAIN._replace(explain=True), None)]) == float("inf")


def test_lists_that_arrive_together_are_made_together(made, loaded):
    ask(ListBatcher(256), loaded, [(direct.AT_ONCE + 8, PLAIN)])
    assert [len(rows) for rows, _ in made[0]] == [direct.AT_ONCE, 8]


def test_other_requests_are_answered_between_two_batches_of_the_event_loop(made, loaded, monkeypatch):
    monkeypatch.setattr(direct, "IN_LOOP_SECONDS", 60.0)  # a busy machine may delay the first one
    batcher, order = ListBatcher(256), []

    async def other():
        while len(made[0]) < 2:
            order.append(len(made[0]))
            await asyncio.sleep(0)

    async def both():
        await batcher.make(loaded, 0, PLAIN)
        made[0].clear()
        await asyncio.gather(other(), *(batcher.make(loaded, row, PLAIN) for row in range(2 * direct.AT_ONCE)))

    asyncio.run(both())
    batcher.close()
    assert all(in_loop for _, in_loop in made[0])
    assert 1 in order
