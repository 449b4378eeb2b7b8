"""The JSON file that describes a saved model or a checkpoint, with its format, its version and a digest."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]  # an object in JSON


@dataclasses.dataclass(frozen=True)
class Format:
    """A kind of description, and the errors that its readers raise."""

    name: str
    version: int
    kind: str  # what it describes, in words
    error: Callable[[str], Exception]
    writer: str  # the function that writes it
    remedy: str

    def seal(self, content: Json) -> Json:
        """The description with this content."""
        sealed = {"format": self.name, "version": self.version, **content}
        return sealed | {"sha256": self._digest(sealed)}

    def _digest(self, content: Json) -> str:
        part = {name: x for name, x in content.items() if name != "sha256"}
        return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()

    def read(self, file: Path, folder: Path) -> Json:
        """The description in `file`, which belongs to what is in `folder`. Raises `error`."""
        try:
            content = json.loads(file.read_bytes())
        except (ValueError, RecursionError) as error:
            raise self.damaged(folder, f"{file.name} is no JSON ({in_short(error)})") from error
        if not isinstance(content, dict) or content.get("format") != self.name:
            raise self.error(f"{file} was not written by {self.writer}")
        if content.get("version") != self.version:
            raise self.error(
                f"{file} has version {content.get('version')!r} of the format; this tapejax reads version {self.version}"
            )
        if content.get("sha256") != self._digest(content):
            raise self.damaged(folder, f"{file.name} is not what was written")
        return content

    def damaged(self, folder: Path, what: str) -> Exception:
        """The error for files that are not what was written."""
        return self.error(f"The {self.kind} {folder} is damaged: {what}. {self.remedy}, or copy the whole directory.")


def in_short(error: Exception) -> str:
    """What an error says, in a line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"
