"""Sphinx settings: MyST pages, references from docstrings, nothing from the network."""

from __future__ import annotations

import importlib.metadata

project = "proton_bench"
author = "the proton_bench developers"
project_copyright = author
version = release = importlib.metadata.version("proton-bench")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_static_path = ["narrow.css"]
html_css_files = ["narrow.css"]
autodoc_typehints = "description"
# Annotations stay as written: many name types that are imported for type checking only.
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
