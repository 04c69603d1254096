"""Clients that wait, flood, leave, or come from another web site."""

import asyncio
import json
import logging
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import httpx
import pytest
from starlette.testclient import TestClient

from dpcml.serving import lists
from dpcml.serving.app import create_app
from dpcml.serving.errors import APIError
from dpcml.serving.monitoring import LineLimit
from dpcml.serving.settings import Limits, ServeSettings
from dpcml.serving.work import WorkPool

TOKEN = "a-token-for-the-tests"
HEAD = b"POST /api/v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SENT = {
    "nothing": b"",
    "half a line": b"POST /api",
    "half the headers": HEAD,
    "half the body": HEAD + b'Content-Length: 100\r\n\r\n{"user"',
}


def connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=120)


def until(true) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_idle_connections_do_not_stop_the_server(models, start):
    """Finding 5: 1,100 idle or half-sent connections, with 1,024 file descriptors and without a token."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1400:
        pytest.skip("this process may not open enough files")
    server = start(models["itemknn"], "--quiet", files=1024)
    server.client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1400), hard))
    try:
        with ExitStack() as stack:
            for k in range(1100):
                place = stack.enter_context(connect(server.client))
                place.sendall(list(SENT.values())[k % len(SENT)])
            with httpx.Client(base_url=server.client.base_url, timeout=120) as client:
                assert client.get("/health").status_code == 200
                assert client.post("/api/v1/recommend", json={"user": 1}).status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("sent", SENT)
def test_a_client_that_sends_half_a_request_is_not_waited_for(models, serve, sent):
    """Finding 5: headers and body have a time, and so has a connection on which nothing comes."""
    limits = Limits(header_seconds=0.2, body_seconds=0.2, idle_seconds=0.2)
    client = serve(models["itemknn"], ServeSettings(limits=limits))
    with connect(client) as place:
        place.sendall(SENT[sent])
        answer = place.recv(1000)
    if sent == "half the body":
        assert answer.startswith(b"HTTP/1.1 408")
        metrics = client.get("/metrics").text
        assert 'dpcml_requests_total{path="/api/v1/recommend",status="408"} 1.0' in metrics
    else:
        assert answer == b""


def test_a_connection_between_two_requests_is_not_kept_for_ever(models, serve):
    client = serve(models["itemknn"], ServeSettings(limits=Limits(idle_seconds=0.2)))
    with connect(client) as place:
        place.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        while part := place.recv(1000):
            text += part
    assert text.startswith(b"HTTP/1.1 200")


def test_lines_of_the_log_are_bounded_and_the_others_counted():
    """Finding 5: a flood of bad requests wrote a line for each."""
    now = [0.0]
    limit = LineLimit(3, clock=lambda: now[0])
    records = [logging.makeLogRecord({"name": "uvicorn.error", "msg": "Invalid HTTP request"}) for _ in range(10)]
    assert [limit.filter(one) for one in records] == [True] * 3 + [False] * 7
    assert limit.filter(logging.makeLogRecord({"name": "dpcml.serving", "msg": "stopped"}))
    now[0] = 1.0
    assert limit.filter(records[0])
    assert records[0].fields == {"lines_left_out": 7}


def test_the_log_of_a_server_is_bounded():
    """Finding 5: the limit is in the way of what is written."""
    code = """
from dpcml.serving.monitoring import log_event, log_to_stderr
log_to_stderr()
for k in range(3000):
    log_event("request", number=k)
log_event("stopped")
"""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert "stopped" in lines[-1]
    assert len(lines) <= 1 + 500 * min(5, 2 + int(time.monotonic() - started))


def test_what_waits_is_bounded_and_dropped_when_its_client_leaves():
    """Finding 7."""
    begun, end, ran = threading.Event(), threading.Event(), []

    async def main():
        pool = WorkPool(max_waiting=1, threads=1)
        running = asyncio.create_task(pool.run(lambda: (begun.set(), end.wait())))
        await asyncio.to_thread(begun.wait)
        waiting = asyncio.create_task(pool.run(lambda: ran.append("left")))
        await asyncio.sleep(0)
        with pytest.raises(APIError) as refused:
            await pool.run(lambda: ran.append("too many"))
        assert (refused.value.status_code, refused.value.headers["Retry-After"]) == (429, "1")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0)
        last = asyncio.create_task(pool.run(lambda: ran.append("stayed")))  # there is room again
        await asyncio.sleep(0)
        end.set()
        await asyncio.gather(running, last)
        pool.close()

    asyncio.run(main())
    assert ran == ["stayed"]


def test_running_work_of_a_client_that_left_ends_at_its_next_step(models, serve, monkeypatch):
    """Finding 7: lists for all users of a request were made for nobody."""
    begun, gone, steps, best = threading.Event(), threading.Event(), [], lists._best

    def step(*given):
        steps.append(given)
        begun.set()
        assert gone.wait(120)
        return best(*given)

    monkeypatch.setattr(lists, "_best", step)
    monkeypatch.setattr(lists, "USERS_AT_ONCE", 10)
    client = serve(models["itemknn"])
    body = json.dumps({"users": list(range(200)), "n": 5}).encode()
    with connect(client) as place:
        place.sendall(
            HEAD.replace(b"/recommend", b"/recommend/batch") + b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        assert begun.wait(120)
    counted = 'dpcml_requests_total{path="/api/v1/recommend/batch",status="499"} 1.0'
    until(lambda: counted in client.get("/metrics").text)
    gone.set()
    assert client.post("/api/v1/recommend/batch", json={"users": [7], "n": 5}).status_code == 200
    assert len(steps) == 2, "of the request of the client that left, the step that ran; and the one of the last request"


def test_a_client_that_left_is_counted_as_that(models, serve):
    """Finding 7: it was counted as 200, after minutes of work."""
    client = serve(models["dpcml"])
    body = json.dumps({"users": list(range(200)) * 5, "n": 100, "explain": True}).encode()
    head = HEAD.replace(b"/recommend", b"/recommend/batch") + b"Content-Length: %d\r\n\r\n" % len(body)
    with connect(client) as place:
        place.sendall(head + body)
    counted = 'dpcml_requests_total{path="/api/v1/recommend/batch",status="499"} 1.0'
    until(lambda: counted in client.get("/metrics").text)
    assert "dpcml_requests_in_flight 1.0" in client.get("/metrics").text


def test_a_full_queue_is_told_so(models):
    """Finding 7."""
    app = create_app(models["itemknn"])
    pool = app.state.pools.lists
    with TestClient(app) as client:
        pool.pending = pool.limit
        answer = client.post("/api/v1/recommend/batch", json={"users": [1]})
        assert (answer.status_code, answer.json()["error"], answer.headers["retry-after"]) == (429, "busy", "1")
        assert client.get("/health").status_code == 200
        pool.pending = 0
        assert client.post("/api/v1/recommend/batch", json={"users": [1]}).status_code == 200


def test_searches_do_not_take_the_threads_of_lists(models):
    """Finding 21: searches have one thread and a short queue of their own."""
    app = create_app(models["itemknn"])
    pool, end = app.state.pools.searches, threading.Event()
    with TestClient(app) as client:
        pool.submit(end.wait)  # a search that takes long
        try:
            assert client.post("/api/v1/recommend", json={"user": 1}).status_code == 200
            pool.pending = pool.limit
            assert client.get("/api/v1/items?q=x").status_code == 429
            assert client.post("/api/v1/recommend/batch", json={"users": [1]}).status_code == 200
        finally:
            end.set()


FOREIGN = {
    "another site": {"Origin": "https://example.org"},
    "no site": {"Origin": "null"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "another name": {"Host": "example.org"},
    "no name": {"Host": ""},
}


@pytest.mark.parametrize("path", ["/api/v1/reload", "/api/v1/feedback"])
@pytest.mark.parametrize("case", FOREIGN)
def test_another_web_site_cannot_change_anything(client, path, case):
    """Finding 12."""
    answer = client.post(path, headers=FOREIGN[case], json={"user": 1, "item": 1, "action": "like"})
    assert (answer.status_code, answer.json()["error"]) == (
        403,
        "foreign_origin" if "Origin" in FOREIGN[case] else "unknown_host",
    )


def test_the_own_page_and_allowed_names_can(models, serve):
    client = serve(models["itemknn"], ServeSettings(hosts=("recommend.example.org",)))
    own = f"http://127.0.0.1:{client.base_url.port}"
    for headers in ({"Origin": own}, {"Host": "recommend.example.org"}, {"Host": f"localhost:{client.base_url.port}"}):
        assert client.post("/api/v1/reload", headers=headers).status_code == 200


def test_a_server_for_this_machine_is_read_under_known_names_only(models, start):
    server = start(models["itemknn"], "--allow-host", "recommend.example.org")
    paths = ("/api/v1/history?user=1", "/api/v1/model", "/metrics")
    for path in paths:
        answer = server.client.get(path, headers={"Host": "evil.example.org"})
        assert (answer.status_code, answer.json()["error"]) == (403, "unknown_host")
        assert server.client.get(path, headers={"Host": "recommend.example.org"}).status_code == 200
        assert server.client.get(path).status_code == 200
    answer = server.client.post("/api/v1/recommend", json={"user": 1}, headers={"Host": "evil.example.org"})
    assert answer.status_code == 403
    for path in ("/health", "/"):
        assert server.client.get(path, headers={"Host": "evil.example.org"}).status_code == 200


@pytest.mark.parametrize("content", [b"{", b" " * (2**20 + 1)])
def test_the_token_is_checked_before_the_body(models, serve, content):
    """Finding 16."""
    client = serve(models["itemknn"], ServeSettings(token=TOKEN))
    answer = client.post("/api/v1/recommend", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 401


def test_without_the_token_the_body_is_not_waited_for(models, serve):
    """Finding 16."""
    client = serve(models["itemknn"], ServeSettings(token=TOKEN))
    with connect(client) as place:
        place.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        assert place.recv(1000).startswith(b"HTTP/1.1 401")


def test_private_answers_are_not_kept_by_caches(client):
    """Finding 16."""
    for answer in (
        client.post("/api/v1/recommend", json={"user": 1}),
        client.post("/api/v1/recommend", json={"user": "nobody"}),
        client.get("/api/v1/history?user=1"),
        client.get("/metrics"),
    ):
        assert answer.headers["cache-control"] == "no-store"
    assert "cache-control" not in client.get("/static/main.js").headers
