"""How does a page look as Markdown, CSV, LaTeX and HTML? Text in, text out; everything is escaped here."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable

from mispair.experiments.content import Entry, Page, ResultTable
from mispair.spreadsheet import as_cell


def markdown(page: Page) -> str:
    """The page as Markdown, its figures as links to SVG files beside it."""
    parts = [f"# {_md(page.title)}", *(_md(sentence) for sentence in page.about)]
    parts += [f"![{_md(drawing.title)}]({drawing.name}.svg)" for drawing in page.drawings]
    for table in page.tables:
        parts += [f"## {_md(table.title)}", _markdown_table(table)]
    parts += ["\n".join(f"- {_md_note(note)}" for note in page.notes)]
    return "\n\n".join(parts) + "\n"


def comma_separated(page: Page) -> str:
    """One record per row and column, measured and published, in full precision."""
    fields = list(dict.fromkeys(key for record in page.records for key in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in record.items()} for record in page.records)
    return text.getvalue()


def _cell(value: object) -> object:
    """Names come from a spec, which may be a stranger's; a name that is a number is no formula."""
    return as_cell(value) if isinstance(value, str) and not re.fullmatch(r"[+-]?[\d.]+", value) else value


def latex(page: Page) -> str:
    """Tabulars to paste, with booktabs; what they mean is in comments."""
    spoken = (page.title, *page.about, *page.notes)
    parts = ["\n".join("% " + " ".join(sentence.split()) for sentence in spoken)]
    for table in page.tables:
        body = "\n".join(" & ".join(_latex_entry(entry) for entry in row) + r" \\" for row in table.rows)
        parts.append(
            f"\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{l{'r' * (len(table.headings) - 1)}}}\n\\toprule\n"
            + " & ".join(_tex(heading) for heading in table.headings)
            + f" \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
            + f"\\caption{{{_tex(table.title)}}}\n\\end{{table}}"
        )
    return "\n\n".join(parts) + "\n"


def page_of_html(page: Page) -> str:
    """The page as one HTML file, its figures inside."""
    escaped = html.escape
    parts = [f"<h1>{escaped(page.title)}</h1>", *(f"<p>{escaped(sentence)}</p>" for sentence in page.about)]
    for drawing in page.drawings:
        parts.append(f"<figure>{drawing.svg}<figcaption>{escaped(drawing.title)}</figcaption></figure>")
    for table in page.tables:
        head = "".join(f"<th>{escaped(heading)}</th>" for heading in table.headings)
        rows = "\n".join("<tr>" + "".join(_html_entry(entry) for entry in row) + "</tr>" for row in table.rows)
        parts.append(
            f"<h2>{escaped(table.title)}</h2>\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
        )
    notes = [re.sub("`([^`]*)`", r"<code>\1</code>", escaped(note)) for note in page.notes]
    parts.append("<ul>" + "".join(f"<li>{note}</li>" for note in notes) + "</ul>")
    return _HTML.format(title=escaped(page.title), body="\n".join(parts))


FORMATS: dict[str, Callable[[Page], str]] = {
    "md": markdown,
    "csv": comma_separated,
    "tex": latex,
    "html": page_of_html,
}

_HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }}
figure {{ margin: 1rem 0; max-width: 30rem; }}
th, td {{ padding: .25rem .75rem; text-align: right; border-bottom: 1px solid rgb(128 128 128 / 30%); }}
th:first-child, td:first-child {{ text-align: left; }}
ul {{ font-size: .9em; opacity: .8; overflow-wrap: anywhere; }}
</style>
{body}
</html>
"""


def _markdown_table(table: ResultTable) -> str:
    head = "| " + " | ".join(_md(heading) for heading in table.headings) + " |"
    rule = "|---" + "|---:" * (len(table.headings) - 1) + "|"
    rows = ["| " + " | ".join(_markdown_entry(entry) for entry in row) + " |" for row in table.rows]
    return "\n".join([head, rule, *rows])


def _markdown_entry(entry: Entry) -> str:
    return f"**{_md(entry.text)}**" if entry.bold else _md(entry.text)


def _latex_entry(entry: Entry) -> str:
    return f"\\textbf{{{_tex(entry.text)}}}" if entry.bold else _tex(entry.text)


def _html_entry(entry: Entry) -> str:
    text = html.escape(entry.text)
    return f"<td><strong>{text}</strong></td>" if entry.bold else f"<td>{text}</td>"


def _md(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>|`])", r"\\\1", text.replace("\n", " "))


def _md_note(text: str) -> str:
    """A sentence with code in it, where a backslash would be printed: a command has to be copied as it is."""
    parts = text.replace("\n", " ").split("`")
    if len(parts) % 2 == 0:  # a mark without its second is no code
        return _md(text)
    return "`".join(part if place % 2 else _md(part) for place, part in enumerate(parts))


def _tex(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",  # in the old font encoding these three print as other marks
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "–": "--",
    }
    special |= {mark: f"\\{mark}" for mark in "&%$#_{}"}
    return "".join(special.get(letter, letter) for letter in text)
