"""Runs the notebooks and stores what they show: `make notebooks` after it looks otherwise than before."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "unit"))

from documents import SHOWN_BY, run_cell  # noqa: E402


def outputs_of(printed: str, shown: Any, number: int) -> list[dict[str, Any]]:
    """In the format of notebooks, version 4.5."""
    outputs: list[dict[str, Any]] = []
    if printed:
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)})
    if shown is not None:
        data: dict[str, Any] = {"text/plain": [f"<{type(shown).__name__}>"]}
        for kind, method in SHOWN_BY.items():
            if content := getattr(shown, method, lambda: None)():
                data[kind] = content.splitlines(keepends=True)
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def store(path: Path) -> None:
    notebook = json.loads(path.read_text())
    names: dict[str, object] = {}
    number = 0
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            number += 1
            printed, shown = run_cell("".join(cell["source"]), names, path.name)
            cell |= {"execution_count": number, "outputs": outputs_of(printed, shown, number)}
        os.chdir(HERE)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for each in sorted(HERE.glob("*.ipynb")):
        store(each)
