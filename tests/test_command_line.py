"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


def need(module: str, name: str) -> Any:
    """A name of the contract; a missing one fails as a point of it."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        pytest.fail(f"Contract: {module} has no {name} yet ({error})")


def test_tokens_prints_the_estimate_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Task 7: `python -m agent tokens TEXT` prints the estimate."""
    main, estimate = need("agent.__main__", "main"), need("agent.tokens", "estimate")
    code = main(["tokens", "Where is the holiday policy?"])
    out = capsys.readouterr().out
    wanted = estimate("Where is the holiday policy?")
    assert (code, out.strip()) == (0, str(wanted)), f"expected {wanted}, got {out!r}, code {code}"


def test_a_command_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Task 7: a command that is not there ends with exit code 2, said on standard error."""
    with pytest.raises(SystemExit) as ended:
        need("agent.__main__", "main")(["no-such-command"])
    captured = capsys.readouterr()
    assert ended.value.code == 2, f"expected exit code 2, got {ended.value.code}"
    assert captured.err, "expected words on standard error, got none"
    assert not captured.out, f"expected nothing on standard output, got {captured.out!r}"


def test_an_agent_error_carries_its_exit_code() -> None:
    """Contract: AgentError is an exception with the class attribute exit_code, 1."""
    error = need("agent.errors", "AgentError")
    assert issubclass(error, Exception), f"{error} is no exception"
    assert error.exit_code == 1, f"expected exit_code 1, got {error.exit_code}"
