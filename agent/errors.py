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


class LateError(EndpointError):
    """An endpoint that has not answered in time."""


class VectorError(AgentError):
    """A vector that an index cannot hold or compare."""


class RowsError(AgentError):
    """A file of labelled requests that cannot be used."""


class ToolError(AgentError):
    """A function that cannot be a tool, or a tool that is not there."""


class TraceError(AgentError):
    """A file that is no trace."""


class StoreError(AgentError):
    """An artifact that is not there, is damaged, or could not be kept."""
