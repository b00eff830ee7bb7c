"""What a person can mend. A message names the file, key or value, and the mend."""


class AgentError(Exception):
    """The root. The command line prints it and exits with `exit_code`."""

    exit_code = 1


class CardError(AgentError):
    """A card that cannot be used. The message starts with its file."""
