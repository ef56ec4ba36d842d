"""The site of the documentation: ``sphinx-build -W -b html docs docs/_build/html`` (extra ``docs``)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy_dist

project = "numpy_dist"
author = "The numpy_dist developers"
copyright = author
version = release = numpy_dist.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
]
exclude_patterns = ["_build"]
language = "en"

# Pages are Markdown; `<!-- ... -->` are marks for the tests. Links to headings are checked as those to pages.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# The reference is docstrings alone: signatures without types, which the parameters' section tells.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# Texts in single backticks are names of NumPy's, of ours or of parameters: links where this site has them, else code.
default_role = "py:obj"
# Listings are of programs, loops and terminals; what is no Python is no error.
highlight_language = "none"

html_theme = "pydata_sphinx_theme"
html_title = f"numpy_dist {release}"
html_theme_options: dict[str, Any] = {
    "logo": {"text": html_title},
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# One of several versions (docs/versions.py); a site of its own has no switcher.
if of_several := os.environ.get("NUMPY_DIST_DOCS_VERSION"):
    html_theme_options |= {
        "switcher": {
            "json_url": f"{os.environ['NUMPY_DIST_DOCS_BASE']}versions.json",
            "version_match": of_several,
        },
        "check_switcher": False,  # it is written when all versions are built
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False

_ROOT = Path(__file__).resolve().parent.parent
_OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]*)\)")


def _without_links_out(app: Any, name: str, text: list[str]) -> None:
    """Links to what lies beside ``docs/`` in the repository become the file's name: the site has no such pages."""
    folder = Path(app.env.doc2path(name)).parent

    def told(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target.is_relative_to(_ROOT / "docs") or not target.exists():
            return match[0]
        path = f"`{target.relative_to(_ROOT)}`"
        return path if match[1] == str(target.relative_to(_ROOT)) else f"{match[1]} ({path})"

    text[0] = _OUTSIDE.sub(told, text[0])


def setup(app: Any) -> None:
    app.connect("source-read", _without_links_out)
