"""How the documentation site is built; `make docs` runs Sphinx with this file.

The source folder is the root of the repository, so that links between pages, result files and
programs are the same on the site as on a forge. What Sphinx reads is listed in `include_patterns`.
Nothing is fetched while the site is built.
"""

from __future__ import annotations

import os
from pathlib import Path

from sphinx.application import Sphinx

from polymargin import __version__

ROOT = Path(__file__).resolve().parents[1]

project = "polymargin"
author = "The polymargin developers"
project_copyright = f"%Y, {author}"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]

root_doc = "docs/index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
include_patterns = [
    "docs/**",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(  # the tables that are pages; others are parts of pages
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "benchmarks" / "results").rglob("*.md"))
        if path.read_text(encoding="utf-8").startswith("# ")
    ),
]
exclude_patterns = [".*", "build", "dist", "docs/_*", "docs/gallery/GALLERY_HEADER.*"]
templates_path = ["docs/_templates"]

# every reference must resolve, but for plain words in single backticks, which may be names
nitpicky = True
nitpick_ignore_regex = [("py:obj", ".*")]
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings say it, in words
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_validation_checks: set[str] = set()

sphinx_gallery_conf = {
    "examples_dirs": "examples/gallery",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "plot_gallery": os.environ.get("GALLERY", "yes") != "no",  # `make docs GALLERY=no` is quick
    "doc_module": ("polymargin",),
    "backreferences_dir": "docs/api/examples",
    "inspect_global_variables": False,
    "download_all_examples": False,
    "show_signature": False,
}


def _skip(
    app: object, what: str, name: str, thing: object, skip: bool, options: object
) -> bool | None:
    """Leave out what scikit-learn adds to every estimator; its own pages describe it."""
    return True if str(getattr(thing, "__module__", "")).startswith("sklearn.") else None


def setup(app: Sphinx) -> None:
    """Register the above."""
    app.connect("autodoc-skip-member", _skip)


html_theme = "pydata_sphinx_theme"
html_title = "polymargin"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_extra_path = ["_root"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher", "version-switcher"],
    "switcher": {"json_url": "_static/switcher.json", "version_match": version},
    "check_switcher": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"docs/index": []}
