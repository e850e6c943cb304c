"""How Sphinx reads the pages in `build/pages`; see `make_site.py`."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
import reference

import oddsengine

project, release = "oddsengine", oddsengine.__version__
copyright, author = "", ""
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]
default_role = "literal"
add_module_names = False
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme = "furo"
html_title = f"oddsengine {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_dark_style = "github-dark"

_NAME = re.compile(r"(oe\.|oddsengine\.)?([A-Za-z_]\w*)((?:\.\w+)*)(\(.*\))?$", re.DOTALL)
_PAGE = re.compile(r"`*\bdocs/(\w+)\.md`*")
_PUBLIC = set(oddsengine.__all__) - {"plot"}


def signature(_app: Sphinx, _what: str, _name: str, value: Any, _options: Any, *_made: str) -> tuple[str, str] | None:
    """Write types as the source does."""
    if not callable(value) or isinstance(value, type(_NAME)):
        return None
    try:
        made = reference.signature(value)
    except (TypeError, OSError):
        return None
    return made if made[0] else None


def field(_app: Sphinx, what: str, name: str, _value: Any, _options: Any, lines: list[str]) -> None:
    """Describe a field of a named tuple by the comment beside it, and link pages of the docs."""
    if lines and lines[0].startswith("Alias for field number"):
        owner, _, last = name.rpartition(".")
        lines[:] = [reference.comment(last, reference.source(reference.find(owner)))]
    lines[:] = [_PAGE.sub(r":doc:`/docs/\1`", line) for line in lines]
    if what in ("attribute", "property"):
        lines[:0] = ["..", ""]  # a comment, else napoleon takes what is before a colon for a type


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link names of the API in code to the reference, and leave fields out of tables of contents."""
    for entry in doctree.findall(addnodes.desc):
        entry["no-contents-entry"] = entry["objtype"] in ("attribute", "property")
    firsts = {
        id(node) for row in doctree.findall(nodes.row) if app.env.docname == "docs/api"
        for node in row[0].findall(nodes.literal)
    }  # fmt: skip
    for node in list(doctree.findall(nodes.literal)):
        match = _NAME.match(node.astext())
        if not match or match[2] not in _PUBLIC or _within(node, nodes.title, nodes.reference):
            continue
        prefix, name, attribute, call = match.groups()
        sure = prefix or attribute or call or id(node) in firsts or "_" in name or not name.islower()
        if sure:  # else it may be a column or a word
            target = {"refdomain": "py", "reftype": "obj", "reftarget": f"oddsengine.{name}{attribute or ''}"}
            here = {"refdoc": app.env.docname, "refexplicit": True}
            node.replace_self(addnodes.pending_xref("", node.deepcopy(), **target, **here))


def _within(node: Any, *kinds: type) -> bool:
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node is not None


def missing(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Link the types of signatures by their last name; those of other packages have no link."""
    if node.get("refdomain") != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    domain = env.domains["py"]
    found = [name for name in domain.objects if name.rpartition(".")[2] == last and node["reftype"] == "class"]
    if len(found) != 1:
        return content
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, content)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the above."""
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", field, priority=100)
    app.connect("doctree-read", link_names, priority=100)
    app.connect("missing-reference", missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
