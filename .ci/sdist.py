"""A hook of Hatch's for the source archive: notebooks go into it without their outputs, which are most of its size and are made
anew by running them."""

import json
import shutil
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WithoutOutputs(BuildHookInterface):
    def initialize(self, version, build_data):
        self._copies = Path(tempfile.mkdtemp())
        for path in sorted(Path(self.root, "notebooks").glob("*.ipynb")):
            copy = self._copies / path.name
            copy.write_text(without_outputs(path.read_text(encoding="utf-8")), encoding="utf-8")
            build_data["force_include"][str(copy)] = f"notebooks/{path.name}"

    def finalize(self, version, build_data, artifact_path):
        shutil.rmtree(self._copies)


def without_outputs(text):
    """A notebook's text, without what its cells have given."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
