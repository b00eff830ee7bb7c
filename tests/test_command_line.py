"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

from helpers import command, need, process


def test_tokens_prints_the_estimate_and_nothing_else() -> None:
    """Task 7: `python -m agent tokens TEXT` prints the estimate."""
    done = command("tokens", "Where is the holiday policy?")
    wanted = need("agent.tokens", "estimate")("Where is the holiday policy?")
    got = (done.returncode, done.stdout.strip())
    assert got == (0, str(wanted)), f"expected {wanted}, got {got}: {done.stderr}"


def test_a_command_that_is_not_there_is_a_usage_error() -> None:
    """Task 7: a command that is not there ends with exit code 2, said on standard error."""
    done = process("no-such-command")
    assert done.returncode == 2, f"expected exit code 2, got {done.returncode}"
    assert done.stderr, "expected words on standard error, got none"
    assert not done.stdout, f"expected nothing on standard output, got {done.stdout!r}"


def test_main_takes_the_words_and_returns_the_exit_code() -> None:
    """Contract: main takes a list of words and returns the exit code, 0."""
    code = need("agent.__main__", "main")(["tokens", "Where is the holiday policy?"])
    assert code == 0, f"given tokens and a text: expected 0, came back {code!r}"


def test_an_agent_error_carries_its_exit_code() -> None:
    """Contract: AgentError is an exception with the class attribute exit_code, 1."""
    error = need("agent.errors", "AgentError")
    assert issubclass(error, Exception), f"{error} is no exception"
    assert error.exit_code == 1, f"expected exit_code 1, got {error.exit_code}"
