"""An answer that is an error, in the shape that OpenAI clients read."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


class Refused(Exception):
    """What a client gets instead of an answer: a status and an error body."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        close: bool = False,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.close = close
        self.headers = headers or {}

    def body(self) -> JSON:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {
            "error": {
                "message": self.message,
                "type": kind,
                "param": self.param,
                "code": self.code,
            }
        }
