"""Stage 04: texts in, vectors out, in POSTs to an endpoint that somebody has set."""

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from helpers import Loopback, command, embeddings, need

KEY = "sk-never-to-be-seen-4711"
SET = {"TINY_BASE_URL": "http://endpoint.test", "TINY_EMBED_MODEL": "bge", "TINY_API_KEY": KEY}
Handler = Callable[[httpx.Request], httpx.Response]


def settings(tree: Path, **environ: str) -> Any:
    return need("agent.settings", "read_settings")(tree, environ)


def client(tree: Path, handler: Handler, **environ: str) -> Any:
    make = need("agent.client", "Client")
    return make(settings(tree, **{**SET, **environ}), httpx.MockTransport(handler))


def vector(text: str) -> list[float]:
    """Two numbers by which a test knows the text again."""
    return [float(len(text)), float(sum(map(ord, text)) % 97 + 1)]


def inputs(request: httpx.Request) -> list[str]:
    return json.loads(request.content)["input"]


def answer(vectors: list[Any], status: int = 200) -> httpx.Response:
    data = [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return httpx.Response(status, text=json.dumps({"object": "list", "data": data}))


def right(request: httpx.Request) -> httpx.Response:
    return answer([vector(text) for text in inputs(request)])


def refused(tree: Path, handler: Handler, texts: tuple[str, ...] = ("a",), **environ: str) -> str:
    """What the EndpointError says that this endpoint must lead to."""
    error = need("agent.errors", "EndpointError")
    embed = client(tree, handler, **environ).embed
    try:
        came = embed(list(texts))
    except error as refusal:
        return str(refusal)
    except Exception as other:
        pytest.fail(f"expected an EndpointError, {type(other).__name__} came out: {other}")
    pytest.fail(f"expected an EndpointError, came back {came!r}")


def wrong_settings(tree: Path, **environ: str) -> str:
    """What the SettingsError says that these variables must lead to."""
    error = need("agent.errors", "SettingsError")
    try:
        came = settings(tree, **environ)
    except error as refusal:
        return str(refusal)
    pytest.fail(f"given {environ}: expected a SettingsError, came back {came}")


# Task 1: settings


def test_the_variables_become_settings(tmp_path: Path) -> None:
    """Task 1: the five settings come from the TINY_ variables."""
    made = settings(tmp_path, **SET, TINY_QUERY_PREFIX="query: ", TINY_PASSAGE_PREFIX="passage: ")
    got = (made.embed_url, made.embed_key, made.embed_model, made.query_prefix, made.passage_prefix)
    wanted = ("http://endpoint.test/v1", KEY, "bge", "query: ", "passage: ")
    assert got == wanted, f"expected {wanted}, came back {got}"


def test_prefixes_and_key_may_be_missing(tmp_path: Path) -> None:
    """Task 1: key and prefixes that are not set are empty."""
    made = settings(tmp_path, TINY_BASE_URL="http://h", TINY_EMBED_MODEL="m")
    got = (made.embed_key, made.query_prefix, made.passage_prefix)
    assert got == ("", "", ""), f"given none of the three: expected empty text, came back {got}"


def test_embeddings_may_have_an_endpoint_of_their_own(tmp_path: Path) -> None:
    """Task 1: TINY_EMBED_BASE_URL and TINY_EMBED_API_KEY win over the two general ones."""
    own = {"TINY_EMBED_BASE_URL": "http://other.test", "TINY_EMBED_API_KEY": "other"}
    made = settings(tmp_path, **SET, **own)
    got, wanted = (made.embed_url, made.embed_key), ("http://other.test/v1", "other")
    assert got == wanted, f"expected {wanted}, came back {got}"


@pytest.mark.parametrize("name", ["TINY_BASE_URL", "TINY_EMBED_MODEL"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_missing_is_named(tmp_path: Path, name: str, value: str | None) -> None:
    """Task 1: a missing or empty address or model is a SettingsError that names the variable."""
    given = {k: v for k, v in SET.items() if k != name} | ({} if value is None else {name: value})
    said = wrong_settings(tmp_path, **given)
    assert name in said, f"given no {name}: expected it in {said!r}"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """Task 1: the environment wins over .env, and .env fills in the rest."""
    (tmp_path / ".env").write_text("TINY_EMBED_MODEL=of-file\nTINY_BASE_URL=http://file.test\n")
    made = settings(tmp_path, TINY_EMBED_MODEL="of-environment")
    got, wanted = (made.embed_model, made.embed_url), ("of-environment", "http://file.test/v1")
    assert got == wanted, f"expected {wanted}, came back {got}"


def test_an_empty_variable_wins_too(tmp_path: Path) -> None:
    """Task 1: a variable that is set to nothing in the environment wins over .env."""
    (tmp_path / ".env").write_text('TINY_QUERY_PREFIX="query: "\n')
    got = settings(tmp_path, **SET, TINY_QUERY_PREFIX="").query_prefix
    assert got == "", f"given an empty TINY_QUERY_PREFIX: expected '', came back {got!r}"


def test_a_dollar_in_the_file_is_a_dollar(tmp_path: Path) -> None:
    """Task 1: a value in .env is taken as it stands; ${HOME} is not filled in."""
    (tmp_path / ".env").write_text("TINY_API_KEY='a${HOME}b$c'\n")
    got = settings(tmp_path, TINY_BASE_URL="http://h", TINY_EMBED_MODEL="m").embed_key
    assert got == "a${HOME}b$c", f"given 'a${{HOME}}b$c': came back {got!r}"


@pytest.mark.parametrize("folder", [".stages/04-client", "work/04-client"])
def test_a_worktree_reads_the_file_of_the_root(tmp_path: Path, folder: str) -> None:
    """Task 1: a tree in .stages/ or work/ reads the .env of the repository's root."""
    tree = tmp_path / folder
    tree.mkdir(parents=True)
    (tmp_path / ".env").write_text("TINY_EMBED_MODEL=of-root\n")
    (tree.parent / ".env").write_text("TINY_EMBED_MODEL=of-nobody\n")
    got = settings(tree, TINY_BASE_URL="http://h").embed_model
    assert got == "of-root", f"given a tree in {folder}: expected of-root, came back {got!r}"


def test_another_tree_reads_the_file_beside_agent(tmp_path: Path) -> None:
    """Task 1: any other tree reads the .env beside its agent/, and none further up."""
    tree = tmp_path / "tiny-agents"
    tree.mkdir()
    (tmp_path / ".env").write_text("TINY_EMBED_MODEL=of-parent\nTINY_BASE_URL=http://parent\n")
    (tree / ".env").write_text("TINY_EMBED_MODEL=of-tree\n")
    got = settings(tree, TINY_BASE_URL="http://h").embed_model
    assert got == "of-tree", f"expected of-tree, came back {got!r}"
    said = wrong_settings(tree)
    assert "TINY_BASE_URL" in said, f"given a TINY_BASE_URL one folder up only: came back {said!r}"


# Task 2: the address


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("http://h", "http://h/v1/embeddings"),
        ("http://h/", "http://h/v1/embeddings"),
        ("http://h/v1", "http://h/v1/embeddings"),
        ("http://h/v1/", "http://h/v1/embeddings"),
        ("http://h/api", "http://h/api/v1/embeddings"),
        ("http://h/api/v1", "http://h/api/v1/embeddings"),
        ("https://h:8443/api/v1/", "https://h:8443/api/v1/embeddings"),
        ("http://h/v1/chat/completions", "http://h/v1/embeddings"),
        ("http://h/v1/embeddings", "http://h/v1/embeddings"),
        ("http://h/v1/embeddings/", "http://h/v1/embeddings"),
        ("http://h/v1/models", "http://h/v1/embeddings"),
        ("http://h/v1beta/openai/", "http://h/v1beta/openai/embeddings"),
        ("http://h/api/v3", "http://h/api/v3/embeddings"),
        ("http://h/vllm", "http://h/vllm/v1/embeddings"),
        (" http://h/v1 ", "http://h/v1/embeddings"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1/embeddings"),
    ],
)
def test_C29_an_address_leads_to_one_path(tmp_path: Path, given: str, wanted: str) -> None:
    """Task 2: with or without /v1, a slash or a pasted path, the POST goes to the same place."""
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(f"{request.method} {request.url}")
        return right(request)

    client(tmp_path, handler, TINY_BASE_URL=given).embed(["a"])
    assert seen == [f"POST {wanted}"], f"given {given!r}: expected POST {wanted}, came {seen}"


@pytest.mark.parametrize(
    "given", ["localhost:8000/v1", "h", "ftp://h/v1", "http:///v1", "http://h/v 1"]
)
def test_C29_what_is_no_address_is_refused(tmp_path: Path, given: str) -> None:
    """Task 2: what is no http address is a SettingsError that names the variable."""
    said = wrong_settings(tmp_path, **{**SET, "TINY_BASE_URL": given})
    assert "TINY_BASE_URL" in said, f"given {given!r}: expected TINY_BASE_URL in {said!r}"


# Task 3: one POST


def test_the_request_is_what_the_protocol_wants(tmp_path: Path) -> None:
    """Task 3: model, input and encoding_format go along, and the key as a bearer token."""
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return right(request)

    client(tmp_path, handler).embed(["Wörter", "words"])
    body, header = json.loads(seen[0].content), seen[0].headers.get("authorization")
    wanted = {"model": "bge", "input": ["Wörter", "words"], "encoding_format": "float"}
    got = {key: body.get(key) for key in wanted}
    assert got == wanted, f"expected {wanted} in the body, came {body}"
    assert header == f"Bearer {KEY}", f"expected 'Bearer' and the key, came {header!r}"


def test_vectors_are_float32_rows(tmp_path: Path) -> None:
    """Task 3: embed returns float32 of shape (texts, dimensions), a row a text, in order."""
    texts = ["a", "bb", "ccc"]
    got = client(tmp_path, right).embed(texts)
    wanted = np.array([vector(text) for text in texts], dtype=np.float32)
    assert got.dtype == np.float32, f"expected float32, came back {got.dtype}"
    assert got.shape == (3, 2), f"given 3 texts: expected shape (3, 2), came back {got.shape}"
    assert np.array_equal(got, wanted), f"expected {wanted.tolist()}, came back {got.tolist()}"


def test_E1_vectors_are_put_in_order_by_index(tmp_path: Path) -> None:
    """Task 3: the order of `index` counts, not the order of arrival."""
    data = [{"index": i, "embedding": [i + 1.0, 0.0]} for i in (2, 0, 1)]
    got = client(tmp_path, lambda _: httpx.Response(200, json={"data": data})).embed(
        ["a", "b", "c"]
    )
    first = got[:, 0].tolist()
    assert first == [1.0, 2.0, 3.0], f"given indices 2, 0, 1: expected 1, 2, 3, came back {first}"


@pytest.mark.parametrize("indices", [[0], [0, 0], [0, 2], [1, 2], [0, 1, 2], []])
def test_E1_each_text_has_one_vector(tmp_path: Path, indices: list[int]) -> None:
    """Task 3: too few, too many or doubled vectors are an EndpointError."""
    data = [{"index": i, "embedding": [1.0, 2.0]} for i in indices]
    refused(tmp_path, lambda _: httpx.Response(200, json={"data": data}), ("a", "b"))


def test_E3_base64_is_decoded_as_little_endian_float32(tmp_path: Path) -> None:
    """Task 3: base64 that comes unasked is little-endian float32."""
    numbers = [0.5, -2.0, 3.25]
    text = base64.b64encode(struct.pack("<3f", *numbers)).decode()
    got = client(tmp_path, lambda _: answer([text])).embed(["a"])
    assert got.tolist() == [numbers], (
        f"given {text}: expected {[numbers]}, came back {got.tolist()}"
    )


def test_E11_no_texts_are_no_request(tmp_path: Path) -> None:
    """Task 3: an empty list gives an empty array, without a request."""
    seen: list[httpx.Request] = []
    got = client(tmp_path, lambda request: seen.append(request) or answer([])).embed([])
    assert len(got) == 0, f"given []: expected an empty array, came back {got!r}"
    assert not seen, f"given []: expected no request, came {len(seen)}"


# Task 4: batches


@pytest.mark.parametrize("limit", [1, 10, 25, 32, 64])
@pytest.mark.parametrize("status", [400, 413, 422])
def test_E7_a_batch_that_is_too_large_is_halved(tmp_path: Path, limit: int, status: int) -> None:
    """Task 4: on 400, 413 or 422 the batch is halved and the rest goes on, in order."""

    def handler(request: httpx.Request) -> httpx.Response:
        if len(inputs(request)) > limit:
            return httpx.Response(status, json={"error": {"message": "batch too large"}})
        return right(request)

    texts = [f"{i:03}" + "x" * i for i in range(150)]
    got = client(tmp_path, handler).embed(texts)
    wanted = np.array([vector(text) for text in texts], dtype=np.float32)
    same = np.array_equal(got, wanted)
    assert same, f"given a limit of {limit}: expected 150 vectors in order, came back {got.shape}"


def test_E7_a_request_has_at_most_64_texts(tmp_path: Path) -> None:
    """Task 4: at most 64 texts a request."""
    seen: list[int] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(len(inputs(request)))
        return right(request)

    client(tmp_path, handler).embed(["a"] * 150)
    assert max(seen) <= 64, f"given 150 texts: expected at most 64 a request, came {seen}"
    assert sum(seen) == 150, f"given 150 texts: expected each once, came {seen}"


def test_E7_what_fitted_is_remembered(tmp_path: Path) -> None:
    """Task 4: the size that was taken is used from then on."""
    seen: list[int] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(len(inputs(request)))
        return right(request) if seen[-1] <= 16 else httpx.Response(413)

    embed = client(tmp_path, handler).embed
    embed(["a"] * 64)
    seen.clear()
    embed(["a"] * 64)
    assert max(seen) <= 16, f"given a limit of 16 met before: expected no larger one, came {seen}"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_E7_one_text_that_is_refused_is_an_error(tmp_path: Path, status: int) -> None:
    """Task 4: a single text that is refused is an EndpointError with the status."""
    said = refused(tmp_path, lambda _: httpx.Response(status, json={"error": "x"}), ("a", "b"))
    assert str(status) in said, f"given {status} for each text: expected it in {said!r}"


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_nothing_is_tried_twice(tmp_path: Path, status: int) -> None:
    """Task 4: any other status is an EndpointError at once, with the status in it."""
    seen: list[int] = []
    said = refused(tmp_path, lambda _: seen.append(1) or httpx.Response(status), ("a", "b"))
    assert len(seen) == 1, f"given {status}: expected one request, came {len(seen)}"
    assert str(status) in said, f"given {status}: expected it in {said!r}"


# Task 5: what comes back is not believed


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", '"x"', "null"])
def test_E5_a_number_that_is_none_is_refused_with_its_text(tmp_path: Path, number: str) -> None:
    """Task 5: NaN, infinity and what is no number never become a vector."""
    rows = [[1, 2], [number, 2]]
    data = ",".join(
        f'{{"index":{i},"embedding":[{row[0]},{row[1]}]}}' for i, row in enumerate(rows)
    )
    refused(tmp_path, lambda _: httpx.Response(200, text=f'{{"data":[{data}]}}'), ("a", "b"))


def test_E5_the_text_of_a_bad_vector_is_numbered(tmp_path: Path) -> None:
    """Task 5: the error names the position of the text, counted from 0 over all batches."""

    def handler(request: httpx.Request) -> httpx.Response:
        rows = [[0.0, 0.0] if text == "bad" else vector(text) for text in inputs(request)]
        return answer(rows)

    texts = ("a",) * 70 + ("bad",) + ("a",) * 9
    said = refused(tmp_path, handler, texts)
    assert "70" in said, f"given a zero vector for text 70: expected 70 in {said!r}"


@pytest.mark.parametrize(
    "rows",
    [[[0, 0]], [[]], [[[1, 2]]], [5], [{}], [[1, 2], [1, 2, 3]]],
    ids=["zero", "empty", "nested", "a number", "a mapping", "two lengths"],
)
def test_E5_what_is_no_vector_is_refused(tmp_path: Path, rows: list[Any]) -> None:
    """Task 5: zero vectors, and what is no flat list as long as the others, are refused."""
    refused(tmp_path, lambda _: answer(rows), ("a", "b")[: len(rows)])


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "5", '"x"', "{}", "<html>fine</html>"),
        *('{"data": null}', '{"data": {"a": 1}}', '{"data": [1]}', '{"data": [{"index": 0}]}'),
        '{"error": {"code": 429}, "data": null}',
    ],
)
def test_an_answer_without_vectors_is_refused(tmp_path: Path, text: str) -> None:
    """Task 5: status 200 without vectors is an EndpointError."""
    refused(tmp_path, lambda _: httpx.Response(200, text=text))


@pytest.mark.parametrize(
    "body", ['{"error": {"message": "no such model"}}', '{"error": "no such model"}']
)
@pytest.mark.parametrize("status", [200, 404])
def test_C17_what_the_endpoint_says_is_passed_on(tmp_path: Path, body: str, status: int) -> None:
    """Task 5: the endpoint's own words are in the error, from an object or a string."""
    said = refused(tmp_path, lambda _: httpx.Response(status, text=body))
    assert "no such model" in said, f"given {body}: expected its words in {said!r}"


@pytest.mark.parametrize("status", [200, 502])
def test_C19_a_page_of_HTML_is_cut_to_200_characters(tmp_path: Path, status: int) -> None:
    """Task 5: at most 200 characters of an HTML page are in the error, without its tags."""
    page = "<html><head><title>502 Bad Gateway</title></head>" + "<p>sorry</p>\n" * 600
    said = refused(tmp_path, lambda _: httpx.Response(status, text=page))
    assert "502 Bad Gateway" in said, f"expected the page's title in {said!r}"
    assert "<" not in said, f"expected no tags, came back {said!r}"
    assert len(said) < 320, f"expected at most 200 characters of the page, came {len(said)}"


# Task 6: keys and proxies


@pytest.mark.parametrize("how", [repr, str, lambda made: f"{made}"])
def test_a_key_is_not_in_the_repr(tmp_path: Path, how: Callable[[Any], str]) -> None:
    """Task 6: settings that are printed do not show the key."""
    made = settings(tmp_path, **SET)
    assert KEY not in how(made), f"expected no key, came back {how(made)!r}"


@pytest.mark.parametrize("status", [200, 400, 401, 500])
@pytest.mark.parametrize(
    "form", ['{{"error": {{"message": "wrong key {}"}}}}', '{{"a": "{}"}}', "<b>{}</b>"]
)
def test_a_key_that_is_sent_back_is_not_in_the_error(
    tmp_path: Path, status: int, form: str
) -> None:
    """Task 6: no error shows the key, also when the endpoint sends it back."""
    said = refused(tmp_path, lambda _: httpx.Response(status, text=form.format(KEY)))
    assert KEY not in said, f"given the key in an answer of {status}: came back {said!r}"


@pytest.mark.parametrize("key", ["sk-ü", "sk-a\nb", "sk-\x00"])
def test_a_key_that_cannot_be_one_is_refused_unseen(tmp_path: Path, key: str) -> None:
    """Task 6: a key that no header can hold is a SettingsError that does not show it."""
    said = wrong_settings(tmp_path, **{**SET, "TINY_API_KEY": key})
    assert key not in said, f"expected no key, came back {said!r}"
    assert "TINY_API_KEY" in said, f"expected the variable's name in {said!r}"


@pytest.mark.parametrize("url", [f"http://user:{KEY}@h/v1", f"http://h/v1?key={KEY}"])
def test_a_key_in_the_address_is_refused_unseen(tmp_path: Path, url: str) -> None:
    """Task 6: an address with a key in it is a SettingsError that does not show it."""
    said = wrong_settings(tmp_path, **{**SET, "TINY_BASE_URL": url})
    assert KEY not in said, f"expected no key, came back {said!r}"


def test_C31_loopback_goes_past_every_proxy() -> None:
    """Task 6: an endpoint on loopback is reached directly; `embed` prints count and numbers."""
    with Loopback(embeddings(lambda _: [0.25, -0.5, 0.125])) as server:
        dead = {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5h://127.0.0.1:9"}
        done = command("embed", "Wörter", env={**server.env, **dead})
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    for part in ("3", "0.25", "-0.5", "0.125"):
        assert part in done.stdout, f"given [0.25, -0.5, 0.125]: expected {part} in {done.stdout!r}"


def test_an_endpoint_that_is_not_there_is_exit_code_4() -> None:
    """Task 6: an endpoint that cannot be reached is named; exit code 4, nothing on stdout."""
    env = {**SET, "TINY_BASE_URL": "http://127.0.0.1:9/v1"}
    done = command("embed", "Wörter", env=env)
    got = (done.returncode, done.stdout)
    assert got == (4, ""), f"expected exit code 4 and no output, got {got}: {done.stderr}"
    assert "http://127.0.0.1:9" in done.stderr, f"expected the address in {done.stderr!r}"
    assert KEY not in done.stderr, f"expected no key in {done.stderr!r}"
    assert "Traceback" not in done.stderr, f"expected no traceback, got {done.stderr!r}"


def test_the_errors_have_their_exit_codes() -> None:
    """Contract: SettingsError has exit code 2, EndpointError 4; both are AgentErrors."""
    for name, code in (("SettingsError", 2), ("EndpointError", 4)):
        error = need("agent.errors", name)
        assert issubclass(error, need("agent.errors", "AgentError")), f"{name} is no AgentError"
        assert error.exit_code == code, f"{name}: expected {code}, came back {error.exit_code}"


@pytest.mark.parametrize("key", ["x", "-", "1", "data", "e"])
def test_a_short_key_does_not_spoil_the_answer(tmp_path: Path, key: str) -> None:
    """Task 6: a key that also stands in the answer by chance changes no vector."""
    got = client(tmp_path, lambda _: answer([[1.0, -2.0]]), TINY_API_KEY=key).embed(["a"])
    assert got.tolist() == [[1.0, -2.0]], f"given key {key!r}: came back {got.tolist()}"


def test_a_key_that_is_sent_back_escaped_is_not_in_the_error(tmp_path: Path) -> None:
    """Task 6: no error shows the key, also when JSON spells its slash as \\/."""
    text = '{"error": "wrong key sk-a\\/b"}'
    said = refused(tmp_path, lambda _: httpx.Response(401, text=text), TINY_API_KEY="sk-a/b")
    assert "sk-a/b" not in said, f"given an escaped key: came back {said!r}"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"data":[{"index":0,"embedding":[1' + "0" * 400 + "]}]}"]
)
def test_E5_what_JSON_allows_and_Python_does_not_is_refused(tmp_path: Path, text: str) -> None:
    """Task 5: a number beyond all floats and 100,000 brackets are an EndpointError."""
    refused(tmp_path, lambda _: httpx.Response(200, text=text))


def test_a_clone_in_a_folder_called_work_reads_its_own_file(tmp_path: Path) -> None:
    """Task 1: only NN-slug in .stages/ or work/ is a worktree of ours."""
    tree = tmp_path / "work" / "tiny-agents"
    tree.mkdir(parents=True)
    (tree / ".env").write_text("TINY_EMBED_MODEL=of-tree\n")
    got = settings(tree, TINY_BASE_URL="http://h").embed_model
    assert got == "of-tree", f"given a clone in work/: expected of-tree, came back {got!r}"
