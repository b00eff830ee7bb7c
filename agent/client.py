"""The client: POSTs to an endpoint; texts in, vectors out. It tries nothing twice."""

import json
import re
from base64 import b64decode
from collections.abc import Sequence
from functools import partial
from typing import Any

import httpx
import numpy as np

from agent.deadline import within
from agent.errors import EndpointError, LateError
from agent.settings import Settings


class Endpoint:
    """One address that takes POSTs. `transport` is for tests: a request in, a response out."""

    def __init__(self, url: str, key: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url, self.key = url, key.strip() or "no-key"
        self.http: httpx.Client | None = None
        self.headers = httpx.Headers()  # of the last answer
        # No proxy stands between us and ourselves (ollama-python#424).
        local = re.match(r"(?i)https?://(localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\])[:/]", self.url)
        tls = not local or self.url[4] in "sS"  # without, there are no certificates to load
        headers = {"Authorization": f"Bearer {self.key}", "Accept-Encoding": "identity"}
        self.how: dict[str, Any] = {"headers": headers, "timeout": 60, "transport": transport}
        self.how |= {"trust_env": not local, "verify": tls}

    most = 2**25  # bytes of an answer: 64 vectors are some

    def post(self, path: str, body: dict[str, Any], seconds: float = 60) -> tuple[int, Any]:
        """The status and the JSON of the answer, or its text where it is not JSON.

        LateError if it is not all there after `seconds`, however slowly it drips.
        """
        try:
            http = self.http or httpx.Client(**self.how)  # a proxy that is unusable fails here
            self.http = None  # one that is given up is not used again
            how = {"json": body, "timeout": max(seconds, 0.001)}
            send = partial(read_whole, http, self.url + path, how, self.most)
            status, self.headers, text = within(seconds, send, http.close)
            self.http = http
        except (TimeoutError, httpx.TimeoutException):
            raise LateError(f"{self.url} has not answered within {seconds:.1f} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL, ImportError, OSError, ValueError) as error:
            said = f"{self.url} cannot be reached ({hide(str(error), self.key) or type(error)})"
            raise EndpointError(f"{said}. Is it running, and is TINY_BASE_URL right?") from None
        try:  # what follows the JSON, such as "data: [DONE]", is left unread (9router#3492)
            return status, json.JSONDecoder().raw_decode(text.lstrip())[0]
        except (ValueError, RecursionError):
            return status, text


def read_whole(
    http: httpx.Client, url: str, how: dict[str, Any], most: int
) -> tuple[int, httpx.Headers, str]:
    """Status, headers and text of an answer. EndpointError for one that is packed, or too long."""
    data = bytearray()
    with http.stream("POST", url, **how) as response:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise EndpointError(f"{url} sent a packed answer, though none was asked for.")
        for part in response.iter_bytes():
            data += part
            if len(data) > most:
                raise EndpointError(f"{url} sent over {most} bytes: that is no answer.")
    return response.status_code, response.headers, data.decode("utf-8", "replace")


class Client(Endpoint):
    """The endpoint that embeds."""

    def __init__(self, settings: Settings, transport: httpx.BaseTransport | None = None) -> None:
        super().__init__(settings.embed_url, settings.embed_key, transport)
        self.body, self.batch = {"model": settings.embed_model, "encoding_format": "float"}, 64

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """One vector a text, in order: float32, (len(texts), dimensions). EndpointError if not."""
        vectors: list[np.ndarray] = []
        while len(vectors) < len(texts):
            batch = list(texts[len(vectors) : len(vectors) + self.batch])
            status, answer = self.post("/embeddings", {**self.body, "input": batch})
            if status in (400, 413, 422) and len(batch) > 1:
                self.batch = len(batch) // 2  # limits from 10 to 512 exist (ApeRAG#716, TEI#50)
            elif status != 200:
                raise EndpointError(f"{self.url} answered {status}: {plain(answer, self.key)}")
            else:
                vectors += read_vectors(answer, vectors, len(batch), self.key)
        return np.array(vectors, dtype=np.float32)


def plain(answer: Any, key: str) -> str:
    """At most 200 characters of what an endpoint said, without HTML (AutoGPT#944: 8 kB of it)."""
    said = answer.get("error", answer) if isinstance(answer, dict) else answer
    said = said.get("message", said) if isinstance(said, dict) else said
    said = hide(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), key)
    seen = "".join(c if c.isprintable() else " " for c in re.sub(r"<[^<>]*>", " ", said))
    return " ".join(seen.split())[:200]


def hide(text: str, key: str) -> str:
    """The text without the key, also as JSON writes it. A short word, as `ollama`, is no secret."""
    if not key or key == "no-key" or (len(key) <= 8 and key.isalpha() and key.islower()):
        return text
    for secret in (key, json.dumps(key)[1:-1]):
        text = text.replace(secret, "(the key)")
    return text


def read_vectors(answer: Any, before: list[np.ndarray], count: int, key: str) -> list[np.ndarray]:
    """The `count` vectors of an answer, in the order of `index`. `before` came before them."""
    try:
        data = sorted(answer["data"], key=lambda item: item["index"])
        sent = [item["embedding"] for item in data]
        # Some send base64 of little-endian float32, unasked (ollama#6934).
        sent = [np.frombuffer(b64decode(v), "<f4") if isinstance(v, str) else v for v in sent]
        vectors = [np.array(v, dtype=np.float64) for v in sent]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise EndpointError(f"no vectors, but this came back: {plain(answer, key)}") from None
    if [item["index"] for item in data] != list(range(count)):
        raise EndpointError(f"{len(data)} vectors came back for {count} texts.")
    for i, vector in enumerate(vectors, len(before)):
        length = (before + vectors)[0].size
        if vector.shape != (length,) or not 1e-30 < abs(vector).max(initial=0) < 1e9:
            raise EndpointError(f"the vector of text {i} is zero, or not {length} finite numbers.")
    return vectors
