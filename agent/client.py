"""The client: texts in, vectors out, in POSTs to /v1/embeddings. It tries nothing twice."""

import json
import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np

from agent.errors import EndpointError
from agent.settings import Settings


class Client:
    """One endpoint. `transport` is for tests: a request in, a response out."""

    def __init__(self, settings: Settings, transport: httpx.BaseTransport | None = None) -> None:
        self.url, self.model, self.batch = settings.embed_url, settings.embed_model, 64
        # No proxy stands between us and ourselves (ollama-python#424).
        local = re.match(r"(?i)https?://(localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\])[:/]", self.url)
        self.key = settings.embed_key or "no-key"
        key = {"Authorization": f"Bearer {self.key}"}
        self.how: dict[str, Any] = {"headers": key, "timeout": 60, "transport": transport}
        self.how["trust_env"] = not local
        self.http: httpx.Client | None = None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """One vector a text, in order: float32, (len(texts), dimensions). EndpointError if not."""
        vectors: list[np.ndarray] = []
        while len(vectors) < len(texts):
            batch = list(texts[len(vectors) : len(vectors) + self.batch])
            status, answer = self.post("/embeddings", {"model": self.model, "input": batch})
            if status in (400, 413, 422) and len(batch) > 1:
                self.batch = len(batch) // 2  # limits from 10 to 512 exist (ApeRAG#716, TEI#50)
            elif status != 200:
                raise EndpointError(f"{self.url} answered {status}: {plain(answer, self.key)}")
            else:
                vectors += read_vectors(answer, vectors, len(batch), self.key)
        return np.array(vectors, dtype=np.float32)

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """The status and the JSON of the answer, or its text where it is not JSON."""
        try:
            self.http = self.http or httpx.Client(**self.how)  # a proxy that is unusable fails here
            response = self.http.post(self.url + path, json={**body, "encoding_format": "float"})
        except (httpx.HTTPError, httpx.InvalidURL, ImportError, OSError, ValueError) as error:
            said = f"{self.url} cannot be reached ({error or type(error).__name__})"
            raise EndpointError(f"{said}. Is it running, and is TINY_BASE_URL right?") from None
        try:
            return response.status_code, json.loads(response.text)
        except (ValueError, RecursionError):
            return response.status_code, response.text


def plain(answer: Any, key: str) -> str:
    """At most 200 characters of what an endpoint said, without HTML (AutoGPT#944: 8 kB of it)."""
    said = answer.get("error", answer) if isinstance(answer, dict) else answer
    said = said.get("message", said) if isinstance(said, dict) else said
    return " ".join(re.sub(r"<[^<>]*>", " ", str(said).replace(key, "(the key)")).split())[:200]


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
