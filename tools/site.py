#!/usr/bin/env python3
"""Writes the pages of the site into a folder, for Sphinx (`make docs`).

    tools/site.py build/site-pages

Pages from outside docs/ join those of docs/, and include/tessera.h becomes a
page. A page that is named in a text, as in `docs/moves.md`, becomes a link. A
file that is named in a text and missing in the repository is an error.
"""
import glob
import os
import re
import shutil
import sys

from gallery import filled

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md",
           "bench/RESULTS.md": "results.md", "data/README.md": "tables.md",
           "include/tessera.h": "tessera_h.md"}
PROGRAM, DATA = "build/tessera", "../shared/data"
NOTEBOOK = "build/notebook.ipynb"  # docs/notebook.ipynb with outputs
FOLDERS = "bench|configs|data|debian|docs|examples|include|kernels|packaging|python|src|tests|tools"
CONTENTS = {
    "Use": "tutorial gui gallery notebook analysis domains density cluster files",
    "Method": "forward-model statistics moves speed records results tables",
    "Program": "python tessera_h design extend contributing",
}


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree("docs/figures", os.path.join(folder, "figures"),
                    ignore=shutil.ignore_patterns("*.py", "*.sh", "*.c"))
    pages = {path: os.path.basename(path) for path in glob.glob("docs/*.md")}
    pages.update(OUTSIDE)
    pages["docs/notebook.ipynb"] = os.path.basename(shutil.copy(NOTEBOOK, folder))
    missing = []
    for path, page in pages.items():
        if path.endswith(".ipynb"):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if path.endswith(".h"):
            text = header_page(text)
        if page == "gallery.md" and os.path.isdir(DATA):
            text = filled(text, os.path.join(folder, "gallery"), PROGRAM, DATA)
        text = linked(text, path, pages, missing)
        if page == "index.md":
            text += contents(pages)
        if page == "python.md":
            text += api("python/tessera_saxs/__init__.py")
        with open(os.path.join(folder, page), "w", encoding="utf-8") as out:
            out.write(text)
    for path, name in missing:
        print(f"{path} names {name}, which is missing", file=sys.stderr)
    return 1 if missing else 0


def linked(text, path, pages, missing):
    def link(match):
        name = match[1]
        if not re.search("NAME|LAYER", name) and not glob.glob(name):
            missing.append((path, name))
        if name == path or name not in pages:
            return match[0]
        return f"[`{name}`]({pages[name]})"

    text = re.sub(rf"`((?:{FOLDERS})/[\w./*-]+|README\.md|CONTRIBUTING\.md)`", link, text)
    return text.replace("](docs/", "](")


def api(package):
    """Directives of autodoc for the public names of the Python package."""
    with open(package, encoding="utf-8") as file:
        names = re.search(r"__all__ = \[(.*?)\]", file.read(), re.S)[1]
    kinds = {"function": [], "class": [], "exception": []}
    for name in re.findall(r"\w+", names):
        kind = ("exception" if re.search("Error|Interrupted", name) else
                "function" if name.islower() else "class")
        kinds[kind].append(f".. auto{kind}:: {name}\n")
    return "".join("\n```{eval-rst}\n" + "".join(lines) + "```\n"
                   for lines in kinds.values())


def contents(pages):
    """The table of contents: CONTENTS, and what is missing there under Use."""
    present = {os.path.splitext(page)[0] for page in pages.values()} - {"index"}
    text = ""
    for part, order in CONTENTS.items():
        names = [name for name in order.split() if name in present]
        if part == "Use":
            names += sorted(present.difference(*map(str.split, CONTENTS.values())))
        text += f"\n```{{toctree}}\n:caption: {part}\n:hidden:\n\n"
        text += "\n".join(names) + "\n```\n"
    return text


def header_page(header):
    """Markdown of a C header: each block between blank lines is a comment and
    the declarations that it describes."""
    page = ["# The C library: tessera.h", prose(header[2:header.index("*/")]),
            "## Status"]
    body = header[header.index("enum {"):header.rindex("#ifdef __cplusplus")]
    for block in body.split("\n\n"):
        comment, code = re.match(r"(?:/\*(.*?)\*/)?(.*)", block, re.S).groups()
        comment = comment or ""
        section = re.match(r" -+ (.*?) -+", comment)
        if section:
            page.append("## " + section[1].capitalize())
            comment = comment[section.end():]
        if "(" in code and "typedef" not in code:
            names = re.findall(r"\w+(?=\()", code)
            page.append("### " + ", ".join(f"`{name}`" for name in names))
        code = re.sub("(?m)^(TESSERA_API | {12}(?= {4}))", "", code).strip()
        if code:
            page.append(f"```c\n{code}\n```")
        page.append(prose(comment))
    return "\n\n".join(page) + "\n"


def prose(comment):
    """A comment as Markdown; the line of an argument becomes an item."""
    text = re.sub(r"(?m)^ \* ?", "", comment).strip()
    text = re.sub(r"(?<=\S)\n {8,}", " ", text)
    text = re.sub(r"(?m)^(\w[\w, ]*?) +((?:\[[\w -]+\])*) +(in|out)\b *",
                  r"- `\1` \2 *\3* ", text)
    text = re.sub(r"(?m)^([^-\n ].*)\n(?=- )", r"\1\n\n", text)
    return re.sub(r"(?m)^(- .*)\n(?=[^-\n ])", r"\1\n\n", text)


if __name__ == "__main__":
    os.chdir(HERE)
    sys.exit(main(sys.argv[1]))
