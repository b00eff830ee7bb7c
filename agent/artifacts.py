"""Artifacts: what one run keeps in the store, and the tool that reads it. It decides no turn."""

import os
from collections.abc import Callable
from typing import Annotated

from agent.cards import Keep
from agent.deadline import within
from agent.digest import SURE, digest
from agent.errors import StoreError
from agent.expand import QUERY, expand
from agent.index import Embedder
from agent.store import HANDLE, Store
from agent.tokens import estimate
from agent.tools import Tool, make_tool

Handle = Annotated[str, "The handle as it stands in the digest, art_ and hex digits"]
Query = Annotated[str, "What to look for, in words of the text or a question"]
Number = Annotated[int, "The number of a part, to stay in it; 0 for the whole"]
Place = Annotated[int, "Where to read from, in characters"]


class Artifacts:
    """The store as one run sees it: which results go in, and how they come back."""

    def __init__(
        self,
        store: Store,
        embedder: Callable[[str], Embedder] | None = None,  # for a handle, with its own cache
        keep: Keep | None = None,
    ) -> None:
        self.store, self.embedder, self.rule = store, embedder, keep or Keep()
        self.handles = set[str]()  # that this run may read

    def keep(self, text: str, request: str) -> tuple[str, str | None]:
        """The text, if it is short; else its digest, and its handle. StoreError if it can't be."""
        if self.short(text):
            return text, None
        handle = self.store.put(text.encode("utf-8", "replace"))
        said = digest(text, request[:QUERY], handle, self.rule.digest)
        self.handles.add(handle)
        return said, handle

    def short(self, text: str) -> bool:
        """Whether a result stays as it is."""
        least = max(self.rule.above, int(self.rule.digest * SURE))
        return len(text) < 16 * least and estimate(text) <= least

    def admit(self, text: str) -> None:
        """Take the handles in a text of ours or of the user's, if the store has them."""
        found = HANDLE.findall(text)
        self.handles.update(h for h in found if os.path.isfile(self.store.path(h)))

    def tool(self, seconds: Callable[[], float]) -> Tool:
        """The tool `expand`. `seconds` says how long a call may take."""

        def expand_(handle: Handle, query: Query = "", part: Number = 0, start: Place = 0) -> str:
            """Read more of a long text of which you see a digest: passages that fit a query, a
            part, or what stands from a place on."""
            found = HANDLE.search(handle)  # some write it in quotes, or with what is around it
            if not found or found[0] not in self.handles:  # a page may name one of another run
                raise StoreError(f"{handle[:80]!r} is no handle of a digest in this conversation.")
            left = seconds()

            def read() -> str:
                text = self.store.text(found[0])
                embedder = self.embedder(found[0]) if self.embedder else None
                return expand(text, found[0], query, part, start, embedder, left / 2)

            try:
                return within(left, read, lambda: None)
            except TimeoutError:
                raise StoreError("there was no time to read it.") from None

        expand_.__name__ = "expand"
        return make_tool(expand_)
