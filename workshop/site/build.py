"""Builds the site with Sphinx, MyST and Furo: offline, and all that a page loads lies beside it."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import warnings
from pathlib import Path

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Generic, Text
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from workshop.site.diffs import compact
from workshop.site.facts import read_course
from workshop.site.sources import write_sources

HERE = Path(__file__).resolve().parent


# What a screen reader is told of the theme's parts: names for two of a kind, and the captions of
# the menu are no headings, since they stand before the first one.
NAMED = {
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    'class="caption" role="heading">': 'class="caption">',
    'class="reference internal"': 'class="reference"',  # for its size
}


class Console(RegexLexer):
    """A console block as the course has them: a command after `$ `, the rest is its output."""

    name = "console"
    aliases = ("console",)
    tokens = {  # noqa: RUF012
        "root": [
            (r"^(\$ )(.*\n)", bygroups(Generic.Prompt, Generic.Strong)),
            (r".+\n?|\n", Text),
        ]
    }


def build(root: Path, target: Path, scratch: Path, host: str | None = None) -> list[str]:
    """Build the site of the checkout in `root`. Returns the generator's warnings.

    `scratch` holds the generated sources and what the next build can use again.
    """
    source = scratch / "source"
    write_sources(read_course(root, host), source)
    anew = stamp() != read(scratch / "stamp")
    said = io.StringIO()
    no_colour = os.environ.get("NO_COLOR")
    os.environ["NO_COLOR"] = "1"
    try:
        with docutils_namespace(), patch_docutils(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            app = Sphinx(
                srcdir=source, confdir=HERE, outdir=target, doctreedir=scratch / "doctrees",
                buildername="html", status=None, warning=said, freshenv=anew,
            )  # fmt: skip
            app.add_lexer("console", Console)
            app.build(force_all=anew)
    finally:
        if no_colour is None:
            del os.environ["NO_COLOR"]
    tidy(target, {path.relative_to(source).with_suffix("") for path in source.rglob("*.md")})
    (scratch / "stamp").write_text(stamp(), encoding="utf-8")
    return [clean(row, source) for row in said.getvalue().splitlines() if row.strip()]


def stamp() -> str:
    """Of the code that builds. After a change of it, nothing of an earlier build is used."""
    whole = hashlib.sha256()
    for path in sorted(HERE.glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def clean(row: str, source: Path) -> str:
    """A warning without this machine's folders and a terminal's colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", row).replace(f"{source}/", "")


def slim(html: str) -> str:
    """The same page in fewer bytes: no indentation outside `<pre>`, no span without a colour.

    And no symbol that nothing uses, no comment of the generator.
    """
    used = set(re.findall(r'<use href="#([^"]+)"', html))
    symbols = re.compile(r'<symbol id="([^"]+)".*?</symbol>\s*', re.DOTALL)
    html = symbols.sub(lambda one: one[0] if one[1] in used else "", html)
    html = re.sub(r"<!-- Generated .*?-->\s*", "", html)
    for old, new in NAMED.items():
        html = html.replace(old, new)
    parts = re.split(r"(<pre.*?</pre>)", html, flags=re.DOTALL)
    parts[::2] = [re.sub(r"\n\s+", "\n", part) for part in parts[::2]]
    parts[1::2] = [compact(part).replace("<span></span>", "") for part in parts[1::2]]
    return "".join(parts)


def tidy(target: Path, pages: set[Path]) -> None:
    """Remove pages that have no source any more, and what nobody loads."""
    kept = {Path("search"), *pages}
    for path in target.rglob("*.html"):
        if path.relative_to(target).with_suffix("") not in kept:
            path.unlink()
            continue
        text = path.read_text(encoding="utf-8")
        if (slimmer := slim(text)) != text:
            path.write_text(slimmer, encoding="utf-8")
    for name in (".doctrees", "_sources"):
        shutil.rmtree(target / name, ignore_errors=True)
    for path in (*target.rglob("*.map"), target / "objects.inv"):
        path.unlink(missing_ok=True)
    (target / ".nojekyll").touch()  # a code host must not drop the folders that begin with _
