"""What a person can mend: one exception, printed as one short message.

Every other exception that leaves the workshop is our own bug.
"""

from __future__ import annotations

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class Problem(Exception):
    """Something the user can mend. `message` names the thing, `mend` what to do about it."""

    def __init__(self, message: str, mend: str = "", exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}\n  {self.mend}" if self.mend else self.message
