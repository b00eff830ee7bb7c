"""Stage 13: one turn of a chat, with what endpoints really send."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers import Done, command, need
from scripted import Raw, Scripted, fails, replies, says

KEY = "sk-never-to-be-seen-4711"
SET = {
    "TINY_BASE_URL": "http://endpoint.test",
    "TINY_CHAT_MODEL": "chatty",
    "TINY_EMBED_MODEL": "bge",
    "TINY_API_KEY": KEY,
}
HELLO = [{"role": "user", "content": "Hallo, wie geht's?"}]
NOW = {"Retry-After": "0"}  # for later stages, which wait and ask again
Handler = Callable[[httpx.Request], httpx.Response]


def settings(tree: Path, **environ: str) -> Any:
    made = need("agent.settings", "read_settings")(tree, {**SET, **environ})
    for name in ("chat_url", "chat_key", "chat_model"):
        assert hasattr(made, name), f"Contract: settings have a {name}, came {made!r}"
    return made


def chat(tree: Path, handler: Handler, **environ: str) -> Any:
    return need("agent.chat", "Chat")(settings(tree, **environ), httpx.MockTransport(handler))


def asked(made: Any) -> Any:
    """The reply to HELLO, with all that the Contract names."""
    try:
        reply = made.ask(HELLO)
    except Exception as error:
        pytest.fail(f"expected a reply, {type(error).__name__} came out: {error}")
    assert isinstance(getattr(reply, "text", None), str), f"Contract: text in {reply!r}"
    for name in ("input", "output", "estimated"):
        usage = getattr(reply, "usage", None)
        assert hasattr(usage, name), f"Contract: a Reply's usage has {name}, came {reply!r}"
    return reply


def answered(tree: Path, answer: Any, **environ: str) -> Any:
    """The reply that is read from this answer: a Raw, or what becomes JSON."""
    return asked(chat(tree, lambda _: http(answer), **environ))


def http(answer: Any, status: int = 200) -> httpx.Response:
    if isinstance(answer, Raw):
        return httpx.Response(answer.status, content=answer.body, headers=answer.headers | NOW)
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return httpx.Response(status, content=text.encode(), headers=NOW)


def refused(tree: Path, answer: Any, status: int = 200, **environ: str) -> str:
    """What the EndpointError says that this answer must lead to."""
    made, error = chat(tree, lambda _: http(answer, status), **environ), need_error()
    try:
        came = made.ask(HELLO)
    except error as refusal:
        return str(refusal)
    except Exception as other:
        pytest.fail(f"expected an EndpointError, {type(other).__name__} came out: {other}")
    pytest.fail(f"expected an EndpointError, came back {came!r}")


def need_error() -> Any:
    return need("agent.errors", "EndpointError")


def ask(*script: Raw, message: str | bytes = "hi", **environ: str) -> tuple[Done, Scripted]:
    """`python -m agent chat` with an endpoint that answers so."""
    with Scripted(*script) as endpoint:
        env = {**SET, "TINY_BASE_URL": endpoint.url, **environ}
        return command("chat", message, env=env), endpoint


# Task 1: settings


def test_the_chat_has_settings_of_its_own(tmp_path: Path) -> None:
    """Task 1: address, key and model of the chat come from the three general variables."""
    made = settings(tmp_path)
    came = (made.chat_url, made.chat_key, made.chat_model)
    wanted = ("http://endpoint.test/v1", KEY, "chatty")
    assert came == wanted, f"expected {wanted}, came back {came}"


def test_embeddings_that_live_elsewhere_do_not_move_the_chat(tmp_path: Path) -> None:
    """Task 1: TINY_EMBED_BASE_URL and TINY_EMBED_API_KEY are nothing to the chat."""
    own = {"TINY_EMBED_BASE_URL": "http://other.test", "TINY_EMBED_API_KEY": "other"}
    made = settings(tmp_path, **own)
    came, wanted = (made.chat_url, made.chat_key), ("http://endpoint.test/v1", KEY)
    assert came == wanted, f"expected {wanted}, came back {came}"


def test_an_address_of_embeddings_alone_serves_the_chat_too(tmp_path: Path) -> None:
    """Task 1: without TINY_BASE_URL the chat goes where the embeddings go."""
    own = {"TINY_BASE_URL": "", "TINY_EMBED_BASE_URL": "http://other.test"}
    came = settings(tmp_path, **own).chat_url
    assert came == "http://other.test/v1", f"expected http://other.test/v1, came back {came}"


def test_the_key_of_the_chat_is_not_in_the_repr(tmp_path: Path) -> None:
    """Task 1: settings that are printed do not show the chat's key."""
    made = settings(tmp_path, TINY_EMBED_API_KEY="other")
    assert KEY not in f"{made!r} {made}", f"expected no key, came back {made!r}"


@pytest.mark.parametrize("key", ["sk-ü", "sk-a\nb"])
def test_a_chat_key_that_no_header_can_hold_is_refused(tmp_path: Path, key: str) -> None:
    """Task 1: a TINY_API_KEY that cannot be one is refused, also beside a good key to embed."""
    error = need("agent.errors", "SettingsError")
    need("agent.chat", "Chat")
    with pytest.raises(error) as refusal:
        settings(tmp_path, TINY_EMBED_API_KEY="good", TINY_API_KEY=key)
    said = str(refusal.value)
    assert "TINY_API_KEY" in said, f"expected the variable's name in {said!r}"
    assert key not in said, f"expected no key, came {said!r}"


@pytest.mark.parametrize("model", [None, ""])
def test_a_missing_chat_model_is_named(tmp_path: Path, model: str | None) -> None:
    """Task 1: without TINY_CHAT_MODEL, embeddings still work and a Chat is a SettingsError."""
    make, error = need("agent.chat", "Chat"), need("agent.errors", "SettingsError")
    given = {k: v for k, v in SET.items() if k != "TINY_CHAT_MODEL"}
    given |= {} if model is None else {"TINY_CHAT_MODEL": model}
    made = need("agent.settings", "read_settings")(tmp_path, given)
    assert made is not None, "Contract: read_settings gives settings without a chat model too"
    need("agent.client", "Client")(made)
    with pytest.raises(error) as refusal:
        make(made)
    assert "TINY_CHAT_MODEL" in str(refusal.value), f"expected its name in {refusal.value}"


# Task 2: the request


def test_the_request_is_what_all_endpoints_take(tmp_path: Path) -> None:
    """Task 2: model, messages and stream false are sent, nothing else, with the key."""
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return http(says("Gut."))

    asked(chat(tmp_path, handler))
    body, header = json.loads(seen[0].content), seen[0].headers.get("authorization")
    wanted = {"model": "chatty", "messages": HELLO, "stream": False}
    assert body == wanted, f"expected the body {wanted}, came {body}"
    assert header == f"Bearer {KEY}", f"expected 'Bearer' and the key, came {header!r}"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/api/v1", "http://h/api/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/embeddings/", "http://h/v1/chat/completions"),
        ("http://h/v1beta/openai/", "http://h/v1beta/openai/chat/completions"),
    ],
)
def test_C29_an_address_leads_to_one_path(tmp_path: Path, given: str, wanted: str) -> None:
    """Task 2: with or without /v1, a slash or a pasted path, the POST goes to the same place."""
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(f"{request.method} {request.url}")
        return http(says("Gut."))

    asked(chat(tmp_path, handler, TINY_BASE_URL=given))
    assert seen == [f"POST {wanted}"], f"given {given!r}: expected POST {wanted}, came {seen}"


def test_the_messages_are_left_alone(tmp_path: Path) -> None:
    """Task 2: what is asked does not change, so it can be asked again."""
    messages = [{"role": "system", "content": "Be short."}, *HELLO]
    before = json.dumps(messages)
    made = chat(tmp_path, lambda _: http(says("Gut.")))
    made.ask(messages)
    made.ask(tuple(messages))
    assert json.dumps(messages) == before, f"expected {before} unchanged, came {messages}"


# Task 3: the reply


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("Gut, danke.\n", "Gut, danke.\n"),
        ("", ""),
        (None, ""),
        ([{"type": "text", "text": "Gut, "}, {"type": "text", "text": "danke."}], "Gut, danke."),
        (["Gut, ", {"type": "text", "text": "danke."}], "Gut, danke."),
        ([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "a"}], "a"),
        ([{"type": "text", "text": None}, None, 3], ""),
        ([], ""),
        ("half \ud83d of it", "half ? of it"),
        ([{"text": "\udc00"}], "?"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_content_is_a_text_null_or_parts(tmp_path: Path, content: Any, wanted: str) -> None:
    """Task 3: the text of a reply, whichever form it comes in, can be printed and sent."""
    came = answered(tmp_path, says(content)).text
    assert came == wanted, f"given the content {content!r}: expected {wanted!r}, came {came!r}"


def test_content_may_be_missing(tmp_path: Path) -> None:
    """Task 3: a message without content is an empty text."""
    came = answered(tmp_path, replies({})).text
    assert came == "", f"given no content: expected '', came {came!r}"


@pytest.mark.parametrize("reason", ["stop", "length", "end_turn", None, 7])
def test_C11_the_finish_reason_decides_nothing(tmp_path: Path, reason: Any) -> None:
    """Task 3: a reply is read whatever finish_reason says."""
    came = answered(tmp_path, replies({"content": "Gut."}, finish_reason=reason)).text
    assert came == "Gut.", f"given finish_reason {reason!r}: expected 'Gut.', came {came!r}"


@pytest.mark.parametrize("trailer", ["\n\ndata: [DONE]", "\n\ndata: [DONE]\n\n", "\n{}", "\x00"])
def test_C25_what_follows_the_JSON_is_not_read(tmp_path: Path, trailer: str) -> None:
    """Task 3: after the JSON, anything may follow, under any content type."""
    text = "\r\n " + says("Gut.").body.decode() + trailer
    kind = {"content-type": "text/event-stream"}
    made = chat(tmp_path, lambda _: httpx.Response(200, content=text.encode(), headers=kind))
    came = asked(made).text
    assert came == "Gut.", f"given {trailer!r} after it: expected 'Gut.', came {came!r}"


# Task 4: usage


def test_usage_is_what_the_endpoint_says(tmp_path: Path) -> None:
    """Task 4: the tokens are those of the endpoint, not estimated."""
    usage = answered(tmp_path, says("Gut.", {"prompt_tokens": 3210, "completion_tokens": 0})).usage
    came = (usage.input, usage.output, usage.estimated)
    assert came == (3210, 0, False), f"expected (3210, 0, False), came back {came}"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": 12},
        {"prompt_tokens": 12, "completion_tokens": None},
        {"prompt_tokens": "12", "completion_tokens": "3"},
        {"prompt_tokens": -12, "completion_tokens": 3},
        {"prompt_tokens": True, "completion_tokens": 3},
        {"prompt_tokens": 1.5, "completion_tokens": 3},
        [],
        "none",
        7,
    ],
    ids=repr,
)
def test_C27_usage_that_is_missing_is_estimated(tmp_path: Path, usage: Any) -> None:
    """Task 4: without two whole numbers, both are estimated, and marked so."""
    estimate = need("agent.tokens", "estimate")
    text = "Mir geht es gut, und dir? " * 9
    came = answered(tmp_path, says(text, usage)).usage
    assert came.estimated is True, f"given usage {usage!r}: expected estimated, came {came}"
    assert came.output == estimate(text), f"given {usage!r}: expected {estimate(text)}: {came}"
    least = estimate(HELLO[0]["content"])
    assert least < came.input < least + 60, f"expected a few over {least} for input, came {came}"


def test_C27_usage_may_not_be_there_at_all(tmp_path: Path) -> None:
    """Task 4: an answer without the key `usage` is estimated too."""
    came = answered(tmp_path, {"choices": [{"message": {"content": "Gut."}}]}).usage
    assert came.estimated is True, f"given no usage: expected estimated, came {came}"
    assert came.input > 0, f"given no usage: expected some tokens of input, came {came}"


# Task 5: no reply


@pytest.mark.parametrize(
    "answer",
    [
        *("", "null", "[]", "5", '"x"', "{}", "<html>fine</html>", "[" * 9_000),
        *({"choices": None}, {"choices": []}, {"choices": {}}, {"choices": [None]}),
        *({"choices": [{}]}, {"choices": [{"message": None}]}, {"choices": [{"message": "x"}]}),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_answer_without_a_message_is_an_error(tmp_path: Path, answer: Any) -> None:
    """Task 5: status 200 without a message is an EndpointError that names the address."""
    said = refused(tmp_path, answer)
    assert "endpoint.test" in said, f"given {answer!r}: expected the address in {said!r}"


@pytest.mark.parametrize("code", [429, "502", 401, "rate_limited", None])
def test_C15_an_error_that_comes_as_a_success_is_one(tmp_path: Path, code: Any) -> None:
    """Task 5: status 200 with an error in it is an EndpointError with the endpoint's words."""
    said = refused(tmp_path, {"error": {"code": code, "message": "not today"}, "choices": None})
    assert "not today" in said, f"given an error in a 200: expected its words in {said!r}"
    assert "endpoint.test" in said, f"expected the address in {said!r}"


@pytest.mark.parametrize("status", [200, 400])
def test_C17_an_error_may_be_a_text(tmp_path: Path, status: int) -> None:
    """Task 5: an error that is a plain text is passed on."""
    said = refused(tmp_path, {"error": "no such model"}, status)
    assert "no such model" in said, f"given an error as text: expected it in {said!r}"


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_another_status_is_an_error(tmp_path: Path, status: int) -> None:
    """Task 5: any other status is an EndpointError that names it, even with a message inside."""
    for answer in ({"error": {"message": "no"}}, says("Gut.").body.decode()):
        said = refused(tmp_path, answer, status)
        assert str(status) in said, f"given {status} and {answer}: expected it in {said!r}"


@pytest.mark.parametrize("status", [200, 502, 504])
def test_C19_a_page_of_HTML_is_cut_to_200_characters(tmp_path: Path, status: int) -> None:
    """Task 5: of a proxy's page, at most 200 characters are in the error, without its tags."""
    page = "<html><head><title>Bad Gateway</title></head>" + "<p>sorry</p>\n" * 600
    said = refused(tmp_path, page, status)
    assert str(status) in said, f"given {status}: expected it in {said!r}"
    assert "Bad Gateway" in said, f"expected the page's title in {said!r}"
    assert "<" not in said, f"expected no tags, came back {said!r}"
    assert len(said) < 320, f"expected at most 200 characters of the page, came {len(said)}"


# what an error shows


@pytest.mark.parametrize("key", [KEY, 'sk-"quoted"-4711', "sk-back\\slash-4711", "sk-a/b+c=="])
@pytest.mark.parametrize("status", [200, 401])
def test_no_error_shows_the_key(tmp_path: Path, key: str, status: int) -> None:
    """Task 5: a key that is sent back is in no error, neither as it is nor as JSON writes it."""
    written = json.dumps(key)[1:-1]
    answers: list[Any] = [
        {"error": {"message": f"wrong key {key}!"}},
        {"error": f"wrong key {key}"},
        {"detail": {"key": key}},
        {"detail": [json.dumps({"key": key})]},
        f"<b>{key}</b>",
        f"no JSON: {json.dumps({'key': key})}",
    ]
    for answer in answers:
        said = refused(tmp_path, answer, status, TINY_API_KEY=key)
        assert key not in said, f"given {answer!r}: expected no key, came {said!r}"
        assert written not in said, f"given {answer!r}: expected no key, came {said!r}"
        twice = key.replace("\\", "\\\\")
        assert twice not in said, f"given {answer!r}: expected no key, came {said!r}"


@pytest.mark.parametrize("form", ["{}", '{{"error": {{"message": "{}"}}}}'], ids=["text", "JSON"])
def test_no_error_holds_control_characters(tmp_path: Path, form: str) -> None:
    """Task 5: what a terminal would obey is not in an error, nor are line ends."""
    bad = "red \x1b[31m bell \x07 right-to-left \u202e null \x00 end\r\nnext \x9b2J done"
    text = json.dumps(bad)[1:-1] if "error" in form else bad
    said = refused(tmp_path, form.format(text), 400)
    assert said.isprintable(), f"given {bad!r}: expected printable characters only, came {said!r}"
    for word in ("red", "bell", "done"):
        assert word in said, f"given {bad!r}: expected {word} in {said!r}"


# Task 6: the command, reached and not


def test_the_command_prints_the_reply(tmp_path: Path) -> None:
    """Task 6: `chat` prints the text on stdout, and on stderr what it cost."""
    done, endpoint = ask(says("Gut,\ndanke: ä €.", {"prompt_tokens": 321, "completion_tokens": 45}))
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert done.stdout == "Gut,\ndanke: ä €.\n", f"expected the text, came {done.stdout!r}"
    assert "321" in done.stderr, f"expected 321 tokens of input in {done.stderr!r}"
    assert "45" in done.stderr, f"expected 45 tokens of output in {done.stderr!r}"
    assert "estimated" not in done.stderr, f"expected counted tokens, came {done.stderr!r}"
    sent = endpoint.requests[0].body["messages"]
    assert sent == [{"role": "user", "content": "hi"}], f"expected the message alone, came {sent}"


def test_the_command_prints_nothing_that_a_terminal_obeys() -> None:
    """Task 6: control characters in a reply are printed as blanks; line ends and tabs stay."""
    done, _ = ask(says("red \x1b[31m\tand\r\x9b2J\x00\nnext"))
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    wanted = "red  [31m\tand  2J \nnext\n"
    assert done.stdout == wanted, f"expected {wanted!r}, came {done.stdout!r}"


def test_C27_the_command_says_what_is_estimated() -> None:
    """Task 6: tokens that the endpoint did not count are marked as estimated."""
    done, _ = ask(says("Gut.", None))
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert "estimated" in done.stderr, f"given no usage: expected estimated in {done.stderr!r}"


def test_a_message_of_broken_bytes_is_sent_nevertheless() -> None:
    """Task 6: bytes that are no UTF-8 become a mark, and the message is sent."""
    done, endpoint = ask(says("Gut."), message=b"hi \xff!")
    assert done.returncode == 0, f"expected exit code 0, got {done.returncode}: {done.stderr}"
    assert endpoint.requests, "expected a request, none came"
    sent = endpoint.requests[0].body["messages"][-1]["content"]
    assert (sent[:3], sent[-1]) == ("hi ", "!"), f"given b'hi \\xff!': came {sent!r}"


def test_an_endpoint_that_refuses_is_exit_code_4() -> None:
    """Task 6: an EndpointError is exit code 4, with one line on stderr and nothing on stdout."""
    done, _ = ask(fails(404, "no such model"))
    came = (done.returncode, done.stdout)
    assert came == (4, ""), f"given 404: expected exit code 4 and no output, came {came}"
    assert "no such model" in done.stderr, f"expected its words in {done.stderr!r}"
    assert len(done.stderr.splitlines()) == 1, f"expected one line, came {done.stderr!r}"


def test_a_missing_model_is_exit_code_2() -> None:
    """Task 6: without TINY_CHAT_MODEL, `chat` is exit code 2 and asks nobody."""
    done, endpoint = ask(says("Gut."), TINY_CHAT_MODEL="")
    assert done.returncode == 2, f"expected exit code 2, got {done.returncode}: {done.stderr}"
    assert "TINY_CHAT_MODEL" in done.stderr, f"expected its name in {done.stderr!r}"
    assert not endpoint.requests, f"expected no request, came {len(endpoint.requests)}"


def test_nobody_there_is_exit_code_4() -> None:
    """Task 6: an address where nobody listens is exit code 4, and named."""
    done = command("chat", "hi", env={**SET, "TINY_BASE_URL": "http://127.0.0.1:9/v1"})
    assert done.returncode == 4, f"expected exit code 4, got {done.returncode}: {done.stderr}"
    assert "127.0.0.1:9" in done.stderr, f"expected the address in {done.stderr!r}"
    assert "Traceback" not in done.stderr, f"expected no stack, came {done.stderr!r}"


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5h://127.0.0.1:9"])
def test_C31_no_proxy_stands_before_loopback(proxy: str) -> None:
    """Task 6: on loopback, proxy variables are not looked at."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    done, _ = ask(says("Gut."), **dict.fromkeys(names, proxy), NO_PROXY="", no_proxy="")
    assert done.returncode == 0, f"given {proxy}: expected exit code 0, came {done.stderr}"
    assert done.stdout == "Gut.\n", f"given {proxy}: expected 'Gut.', came {done.stdout!r}"


def test_C31_a_proxy_that_is_unusable_is_an_endpoint_error(tmp_path: Path) -> None:
    """Task 6: elsewhere, a proxy that cannot be used is exit code 4, no crash."""
    proxy = {"http_proxy": "socks5h://127.0.0.1:9", "no_proxy": "", "NO_PROXY": ""}
    none = {"SSL_CERT_DIR": str(tmp_path)}  # loading all certificates takes 0.2 s
    done = command("chat", "hi", env={**SET, **proxy, **none})
    assert done.returncode == 4, f"expected exit code 4, got {done.returncode}: {done.stderr}"
    assert "endpoint.test" in done.stderr, f"expected the address in {done.stderr!r}"
    assert "Traceback" not in done.stderr, f"expected no stack, came {done.stderr!r}"
