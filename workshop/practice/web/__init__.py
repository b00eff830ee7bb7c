"""The practice web site: hosts under `.example`, whose pages are made here and nowhere else."""

from __future__ import annotations

from .site import Page, Site, site

__all__ = ["Page", "Site", "site"]
