"""Where a notebook can be opened in Colab, a hosted notebook service: it reads notebooks from GitHub."""

import re


def colab_address(repository, path, branch="main"):
    """The address that opens the file `path` of a repository on GitHub; None if `repository` is no address of one."""
    found = re.fullmatch(r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?", repository or "")
    return found and f"https://colab.research.google.com/github/{found[1]}/{found[2]}/blob/{branch}/{path}"


def button(repository, path, branch="main"):
    """The button, and what has to run there first: the notebook comes without the files beside it. Empty without an address."""
    address = colab_address(repository, path, branch)
    if not address:
        return ""
    folder = re.sub(r"\.git$", "", repository.strip("/")).rsplit("/", 1)[1]
    setup = (
        f"!git clone --depth 1 --branch {branch} {repository}\n%cd {folder}/notebooks\n%pip install -q '..[notebooks]'"
    )
    return (
        f'<p><a class="md-button" href="{address}">Open in Colab</a></p>\n'
        f"<details><summary>Run this there first, in a cell of its own</summary><pre><code>{setup}</code></pre></details>\n"
    )
