"""What the site has beside the pages in docs/: notebooks, files of the repository, the API, the played tape."""

import json
import os
import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from formulas import FONT, with_mathml
from hosted import button
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
# Pages of the repository that do not lie in docs/.
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "notebooks/course.md": "course.md",
    "tests/tf/parity/DIFFERENCES.md": "asserted.md",
}
# Each page of the API: its title, and its objects with the names that users write, after a colon those of its members that
# are shown where not all of them are.
API = {
    "tape": (
        "The tape",
        {
            "tapejax.tape.gradient_tape": "GradientTape UnconnectedGradients",
            "tapejax.tape.accumulator": "ForwardAccumulator",
        },
    ),
    "seeing": (
        "What a tape shows",
        {
            "tapejax.tools.seeing.explain": "Explanation SourceReport PathStep",
            "tapejax.tools.seeing.steps": "Backward:gradients BackwardStep",
            "tapejax.tools.seeing.memory": "Memory MemoryRow",
            "tapejax.tools.seeing.summary": "Summary SummaryRow",
            "tapejax.tools.seeing.source": "TapeFunction code",
            "tapejax.tools.seeing.drawing": "Drawing",
            "tapejax.tools.seeing.play": "Play",
        },
    ),
    "custom_gradients": (
        "Custom gradients",
        {
            "tapejax.tf.ops.custom_gradient": "custom_gradient recompute_grad grad_pass_through",
            "tapejax.tf.ops.registry": "RegisterGradient no_gradient",
        },
    ),
    "values": (
        "Values",
        {
            "tapejax.tf.values.tensor": "Tensor",
            "tapejax.tf.values.variable": "Variable",
            "tapejax.tf.values.conversion": "constant convert_to_tensor is_tensor",
            "tapejax.tf.values.dtypes": "TensorShape DType as_dtype",
            "tapejax.tf.values": "nest:assert_same_structure,flatten,is_nested,map_structure,pack_sequence_as errors",
        },
    ),
    "programs": (
        "Whole programs",
        {
            "tapejax.tf.programs.function": "function TensorSpec",
            "tapejax.tf.programs.module": "Module",
            "tapejax.tf.programs": "saved_model train",
            "tapejax.tf.libraries": "keras",
        },
    ),
    "data": ("Datasets", {"tapejax.tf.programs": "data"}),
    "checking": ("Checking", {"tapejax.tf.testing": "compute_gradient max_error", "tapejax.tf.ops": "debugging"}),
}
PLAYED = "played_tape.html"
EMBEDDED = f'<iframe class="played" src="{PLAYED}" title="A tape, played"></iframe>\n\n[On a page of its own]({PLAYED})'
LINK = r"(?<=\]\()([^)\s:#]+)(?=[)#])"  # one that leads to a file


def place_of(path):
    """Where a file of the repository is in the site's sources: a page, a notebook, or shown as a source."""
    if path.startswith("docs/") and not path.endswith(".py"):
        return path.removeprefix("docs/")
    return PAGES.get(path) or (path if path.endswith(".ipynb") else f"source/{path}.md")


def page_of(src_uri):
    """The file of the repository that a page of the site shows."""
    return next((path for path, place in PAGES.items() if place == src_uri), f"docs/{src_uri}")


def links(text):
    """The links of a page that lead to files: matches of which the first group is the path."""
    return re.finditer(LINK, text)


def target_of(page, link):
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def source_page(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    fence = "`" * 5
    language = {".py": "python", ".ipynb": "json"}.get(Path(path).suffix, "text")
    about = "---\nhide: [toc]\nsearch:\n  exclude: true\n---"  # lines of code have the place of the contents
    return f"{about}\n\n# {posixpath.basename(path)}\n\n`{path}`\n\n{fence}{language}\n{text}{fence}\n"


def api_page(title, objects):
    def entry(module, name, members):
        chosen = f"      members: [{members}]\n" if members else ""
        return f"::: {module}.{name}\n    options:\n      heading: {name}\n      toc_label: {name}\n{chosen}"

    listed = [(module, *name.partition(":")[::2]) for module, names in objects.items() for name in names.split()]
    return "\n".join([f"# {title}\n", *(entry(*each) for each in listed)])


def run(*command):
    """What a Python program prints, on the CPU, in lines of 80 characters."""
    settings = {"JAX_PLATFORMS": "cpu", "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *command]
    return subprocess.run(command, env=os.environ | settings, check=True, capture_output=True, text=True).stdout


def command_line_page():
    general = run("-m", "tapejax", "--help")
    commands = re.findall(r"(?m)^    (\w+)  ", general)
    sections = [
        f"## python -m tapejax {command}\n\n```text\n{run('-m', 'tapejax', command, '--help')}```\n"
        for command in commands
    ]
    return "\n".join(["# The command line", "", f"```text\n{general}```\n", *sections])


def notebooks():
    """The notebooks in the order of the course, with their titles."""
    page = (ROOT / "notebooks" / "course.md").read_text(encoding="utf-8")
    plan = re.findall(r"(?m)^\| (?:first|guides|(?:lab )?\d+) \| \[[^\]]+\]\((\w+\.ipynb)\)", page)
    for name in dict.fromkeys(plan):  # two lectures may share one
        if (path := ROOT / "notebooks" / name).exists():
            first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
            title = "".join(first).split("\n")[0].removeprefix("# ").replace("`", "").replace(".", "", 1)
            yield {title: f"notebooks/{path.name}"}


def on_config(config):
    (students,) = (item for item in config.nav if "For students and teachers" in item)
    students["For students and teachers"] += notebooks()
    return config


@event_priority(100)  # before mkdocs-jupyter, which looks for notebooks among the files
def on_files(files, config):
    def add(src_uri, **what):
        files.append(File.generated(config, src_uri, **what))

    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        files.append(File(f"notebooks/{notebook.name}", str(ROOT), config.site_dir, config.use_directory_urls))
    for path, place in PAGES.items():
        add(place, content=(ROOT / path).read_text(encoding="utf-8"))
    for name, page in API.items():
        add(f"api/{name}.md", content=api_page(*page))
    add("api/command_line.md", content=command_line_page())
    add(f"site/{FONT.name}", content=FONT.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        run(str(ROOT / "docs" / "site" / "played.py"), f"{folder}/{PLAYED}")
        add(PLAYED, content=Path(folder, PLAYED).read_bytes())
    linked = {
        target_of(page_of(page.src_uri), link[1])
        for page in files.documentation_pages()
        if page.src_uri.endswith(".md")
        for link in links(page.content_string)
    }
    for path in sorted(linked | {"docs/site/played.py"}):
        place = place_of(path)
        if place.startswith("source/") and (ROOT / path).is_file():
            add(place, content=source_page(path))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links of the repository become links of the site. One that leads nowhere fails the strict build."""
    src = page.file.src_uri
    if not src.endswith(".md") or src.startswith(("source/", "api/")):
        return markdown

    def moved(link):
        place = place_of(target_of(page_of(src), link[1]))
        return posixpath.relpath(place, posixpath.dirname(src) or ".")

    if src == "guide.md":  # three columns of code need the whole width
        page.meta["hide"] = ["navigation", "toc"]
    markdown = with_results(re.sub(LINK, moved, with_lists(markdown)))
    return re.sub(r"(?s)<!-- the played tape.*?<!-- end of the played tape -->", EMBEDDED, markdown)


def with_lists(markdown):
    """A blank line before each list: Python's Markdown needs one, GitHub's does not."""
    return re.sub(r"(?m)^([^\s*|#>`-].*|\*\*.*)\n(?=\* )", r"\1\n\n", markdown)


def with_results(markdown):
    """What a block prints comes below it. The pages have it as a comment after ``print(...)``, or as text after the block."""

    def block(found):
        printed = re.findall(r"(?m)^\s*print\(.*\)  # (.*)$", found[1])
        code = re.sub(r"(?m)^(\s*print\(.*\))  # .*$", r"\1", found[1])
        below = "\n".join([*printed, *([found[2].rstrip()] if found[2] else [])])
        return f"```python\n{code}```\n" + (f"\n``` {{.text .result}}\n{below}\n```\n" if below else "")

    return re.sub(r"(?ms)^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", block, markdown)


def on_page_content(content, page, config, files):
    """Formulas of notebooks become MathML, which browsers show without a script."""
    if not page.file.src_uri.endswith(".ipynb"):
        return content
    # mkdocs-jupyter leaves out what is code, in titles and in links
    found = re.findall(r'(?s)<h\d id="([^"]*)">(.*?)<a class="anchor-link"', content)
    for item, (item.id, title) in zip(headings(page.toc), found, strict=True):
        item.title = re.sub("<.*?>", "", title)
    repository = os.environ.get("TAPEJAX_REPOSITORY") or config.repo_url
    hosted = button(repository, page.file.src_uri, config.extra.get("branch", "main"))
    content = content.replace('href="course.md"', 'href="../course.html"')  # which lies beside the notebooks
    return hosted + with_mathml(folded(content))


def on_post_page(output, page, config):
    return following_the_system(output)


def on_post_template(output_content, template_name, config):
    return following_the_system(output_content) if template_name == "404.html" else output_content


def following_the_system(output):
    return re.sub("<body[^>]*>", rf"\g<0>{COLOURS}", output, count=1)


def folded(content):
    """The code of figures, in cells with the tag ``drawing``, opens at a click."""
    cell = r'(?s)(<div class="[^"]*\bcelltag_drawing\b[^"]*" id="[^"]*">)(.*?)(?=<div class="jp-Cell-outputWrapper)'
    return re.sub(cell, r'\1<details class="drawing"><summary>The code of the figure</summary>\2</details>', content)


def headings(items):
    for item in items:
        yield item
        yield from headings(item.children)


# Light or dark as the reader's system is, now and when it changes. (The theme would keep what it found at the first visit.) It
# comes first in the page: the players look at it.
COLOURS = """<script>
{
  const dark = matchMedia("(prefers-color-scheme: dark)")
  const follow = () => {
    document.body.dataset.mdColorScheme = dark.matches ? "slate" : "default"
    document.body.dataset.mdColorPrimary = dark.matches ? "black" : "white"
  }
  follow()
  dark.addEventListener("change", follow)
}
</script>
"""
