"""Sphinx: `make docs` builds build/site from the pages that tools/site.py writes."""
import os
import sys

sys.path.insert(0, os.path.abspath("../python"))
project = "tessera"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_default_options = {"members": True, "member-order": "bysource"}
add_module_names = False
default_role = "code"  # single backquotes in docstrings
autodoc_typehints_format = "short"
myst_heading_anchors = 3
nb_execution_mode = "off"  # make ran the notebook before
exclude_patterns = ["gallery/data"]  # a link to all data
html_theme = "furo"
html_title = "tessera"
html_show_copyright = html_show_sourcelink = html_copy_source = False
html_show_sphinx = False
highlight_language = "none"
