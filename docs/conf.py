"""The site: ``make site``. Its source is the tree's root, so that every link between files holds here and on GitHub.

The pages are README.md, which is the front, docs/*.md, the tables of ops and of the language beside their packages, and
the notebooks as they are committed: nothing is executed and nothing is fetched. What differs from the files is made in
docs/extension.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extension"))

import metalnb

project = "metalnb"
author = "metalnb contributors"
project_copyright = "metalnb contributors, MIT license"
version = release = metalnb.__version__

root_doc = "README"
include_patterns = [
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/api/*.md",
    "metalnb/library_kernels/README.md", "metalnb/msl/README.md",
    "notebooks/[0-9][0-9]_*.ipynb",  # and none that a reader has made beside them
]  # fmt: skip
exclude_patterns = ["docs/README.md", ".*", "build"]  # the site's own contents say which documents there are

extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "directives", "metal", "pages",
]  # fmt: skip

# Notebooks and Markdown
nb_execution_mode = "off"
nb_render_error_lexer = "metal-error"
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

# Docstrings
default_role = "py:obj"  # `Array` in a docstring is a name of Python's, and a link where there is one
autodoc_typehints = "none"  # the docstrings say the types
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Parameters of a call", "params_style"), ("Attributes", "params_style")]
add_module_names = False
toc_object_entries_show_parents = "hide"

# The page
html_theme = "furo"
html_theme_options = {"light_css_variables": {"color-code-background": "#f6f8fa"}}
html_title = "metalnb"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "github-light"
pygments_dark_style = "github-dark"
copybutton_selector = ":not(.output) > div.highlight pre"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
