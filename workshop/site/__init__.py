"""The site: every stage on a page, made from `stages/` and `docs/`, with nothing added by hand."""
