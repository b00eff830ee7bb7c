"""What a person can mend. A message names the file, key or value, and the mend."""


class AgentError(Exception):
    """The root. The command line prints it and exits with `exit_code`."""

    exit_code = 1


class CardError(AgentError):
    """A card, or a folder of cards, that cannot be used."""


class SettingsError(AgentError):
    """A TINY_ variable that is missing or wrong."""

    exit_code = 2


class EndpointError(AgentError):
    """An endpoint that is not there, or that answers with something else than it should."""

    exit_code = 4


class VectorError(AgentError):
    """A vector that points nowhere, or that does not fit the others."""
