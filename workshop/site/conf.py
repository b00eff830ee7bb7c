"""Sphinx's settings for the site."""

project = "tiny-agents"
author = "the tiny-agents authors"
copyright = "the tiny-agents authors, MIT licence"
extensions = ["myst_parser"]
# Contracts leave values out with `…`, which is no Python.
suppress_warnings = ["misc.highlighting_failure"]
myst_enable_extensions = ["alert", "attrs_block"]
myst_heading_anchors = 3
highlight_language = "text"
pygments_style = "github-light"
pygments_dark_style = "github-dark"
html_theme = "furo"
html_title = "tiny-agents"
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}
templates_path = ["templates"]
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
# It would read the pages found by `fetch`, which a page opened as a file may not.
html_show_search_summary = False
