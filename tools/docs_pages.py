"""Pages of the documentation that are made from other files: the API, the examples, the Markdown files of the root.

A hook of MkDocs. Links that leave docs/ lead to the page of that file where there is one; of what has no page (source
files, folders of configurations) the name stays.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PROJECT = ("CONTRIBUTING.md", "PAPERS.md", "CHANGELOG.md", "RELEASING.md", "SECURITY.md")
PACKAGES = {  # in the order of the menu
    "mispair": "The front door: everything the command line does, as functions.",
    "mispair.losses": "Losses as modules, for training loops of your own.",
    "mispair.functional": "The mathematics: pure functions on tensors and arrays.",
    "mispair.data": "Reading pairs, mismatching them, batches.",
    "mispair.methods": "The methods, and what one of your own derives from.",
    "mispair.models": "The backbones, and what one of your own derives from.",
    "mispair.protocols": "The seams between method, model, run and evaluation.",
    "mispair.types": "Small frozen values that travel between packages.",
}
WORKER = "assets/frame_worker.js"
_FOREIGN_WORKER = "https://unpkg.com/iframe-worker/shim"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def public_names(module: str) -> list[str]:
    """`module.name` of everything a module exports: its `__all__`, or else what it defines without an underscore."""
    path = ROOT / "src" / Path(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8"))
    homes: dict[str, str] = {}
    exported: list[str] | None = None
    defined = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            homes |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            defined.append(node.name)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id == "__all__" and node.value is not None:
                    exported = list(ast.literal_eval(node.value))
    names = defined if exported is None else [name for name in exported if not name.startswith("_")]
    return [homes.get(name, f"{module}.{name}") for name in names]


def api_pages() -> dict[str, str]:
    """The pages of the API by their address below docs/."""
    pages = {}
    listing = ["# Python", "", "Everything that is exported. Names import when first used.", ""]
    exported = {module: public_names(module) for module in PACKAGES}
    home = {name: module for module in PACKAGES for name in exported[module]}  # the last: the most special
    for module, about in PACKAGES.items():
        address = f"{module.replace('.', '-')}.md"
        names = [name for name in exported[module] if home[name] == module]
        names.sort(key=lambda name: name.rpartition(".")[2][0].isupper())  # functions first
        elsewhere = [name for name in exported[module] if home[name] != module]
        shown = ", ".join(f"[`{name.rpartition('.')[2]}`]({address}#{name})" for name in names)
        listing.append(f"- [`{module}`]({address}): {about} {shown}")
        parts = [f"# `{module}`", about, *(f"::: {name}" for name in names)]
        if elsewhere:
            links = (f"[`{n.rpartition('.')[2]}`]({home[n].replace('.', '-')}.md#{n})" for n in elsewhere)
            parts.insert(2, f"Also here: {', '.join(links)}.")
        pages[f"api/{address}"] = "\n\n".join(parts) + "\n"
    pages["api/index.md"] = "\n".join(listing) + "\n"
    return pages


def example_page() -> str:
    """Every file of examples/ with its docstring in front of its code."""
    parts = [
        "# Examples",
        "",
        "Each is a file of `examples/` and runs as it stands: `python examples/own_loop.py`.",
        "",
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        about = ast.get_docstring(tree) or ""
        first = tree.body[0].end_lineno or 0
        parts += [f"## {path.name}", "", about, "", *_cells(source.splitlines()[first:]), ""]
    return "\n".join(parts)


def _cells(lines: list[str]) -> list[str]:
    """Code as blocks of Python; cells marked `# %% [markdown]` as the text they are, their headings one level down."""
    cells: list[tuple[bool, list[str]]] = [(False, [])]
    for line in lines:
        if line.startswith("# %%"):
            cells.append(("[markdown]" in line, []))
        else:
            cells[-1][1].append(line)
    parts: list[str] = []
    for is_text, cell in cells:
        if is_text:
            said = [line.removeprefix("#").removeprefix(" ") for line in cell]
            parts += [*(f"#{line}" if line.startswith("#") else line for line in said), ""]
        elif code := "\n".join(cell).strip():
            parts += ["```python", code, "```", ""]
    return parts


def on_config(config: Any) -> Any:
    """The menu below the guide: the API, then what research and contributors need."""
    api = [{"Overview": "api/index.md"}]
    api += [{module: f"api/{module.replace('.', '-')}.md"} for module in PACKAGES]
    results = [f"results/{path.name}" for path in sorted((ROOT / "docs" / "results").glob("*.md"))]
    research: list[Any] = [{"Papers": "project/PAPERS.md"}, {"Backbones": "backbones.md"}]
    research += [{"Experiments": "experiments.md"}, {"Results": results}]
    extend = [{"Contributing": "project/CONTRIBUTING.md"}, {"Architecture": "architecture.md"}]
    extend += [{"Mutants": "mutants.md"}]
    extend += [{Path(name).stem.capitalize(): f"project/{name}"} for name in PROJECT[2:]]
    config["nav"] = [entry for entry in config["nav"] if not isinstance(entry, dict) or "Python" not in entry] + [
        {"Python": api},
        {"Research": research},
        {"Project": extend},
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    pages = {**api_pages(), "examples.md": example_page()}
    pages |= {f"project/{name}": (ROOT / name).read_text(encoding="utf-8") for name in PROJECT}
    pages[WORKER] = (ROOT / "tools" / "frame_worker.js").read_text(encoding="utf-8")
    for address, content in pages.items():
        files.append(File.generated(config, address, content=content))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme would fetch a script from another host so that search works from a disk; ours does that."""
    return output.replace(_FOREIGN_WORKER, posixpath.relpath(WORKER, posixpath.dirname(page.file.src_uri) or "."))


def on_post_template(output: str, template_name: str, config: Any) -> str:
    return output.replace(_FOREIGN_WORKER, WORKER)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    known = {file.src_uri for file in files}
    return rewrite_links(markdown, page.file.src_uri, known)


def rewrite_links(markdown: str, address: str, known: set[str]) -> str:
    """Links of the page at `address` (below docs/) as they are on the site."""
    at_root = address.startswith("project/")
    folder = "" if at_root else posixpath.join("docs", posixpath.dirname(address))

    def replaced(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        place, _, anchor = target.partition("#")
        if not place or re.match(r"[a-z]+:", place):
            return match[0]
        file = posixpath.normpath(posixpath.join(folder, place))  # seen from the root of the repository
        page = file.removeprefix("docs/") if file.startswith("docs/") else f"project/{file}"
        if file == "README.md":
            page = "index.md"
        if page not in known:
            return match[0] if file.startswith("docs/") and not (ROOT / file).is_dir() else text
        way = posixpath.relpath(page, posixpath.dirname(address) or ".")
        return f"{mark}[{text}]({way}{'#' + anchor if anchor else ''})"

    return _LINK.sub(replaced, markdown)
