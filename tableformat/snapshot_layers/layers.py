"""`Layers`: the picture of a snapshot, as text and as SVG."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tableformat.arguments import checked_methods
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.snapshot_layers import svg as drawing
from tableformat.snapshot_layers import text as writing
from tableformat.snapshot_layers.bands import arrange, depth
from tableformat.snapshot_layers.collect import DATA, collect
from tableformat.snapshot_layers.picture import Picture


@checked_methods
@dataclass(frozen=True, slots=True, repr=False)
class Layers:
    """The files of a snapshot: the key space from left to right, sequence numbers from bottom to top. Made from
    metadata; no data file was opened.

    A span is drawn from the bounds of a file. A delete applies to data below it, and a position delete or deletion
    vector also to data on the same level. `str()` is the text; notebooks display the drawing.
    """

    picture: Picture
    """The contents of the drawing."""

    def __repr__(self) -> str:
        return f"Layers({self.picture.name!r}, snapshot {self.picture.snapshot_id})"

    @property
    def is_binned(self) -> bool:
        """Whether some files are drawn together, because there are too many to draw each."""
        return self.picture.is_binned

    def svg(self) -> str:
        """An SVG document of at most a few hundred kilobytes, without scripts, for light and dark themes.

        >>> table.layers().svg().startswith("<svg")
        True
        """
        return drawing.document(self.picture)

    def text(self, *, width: int = 100) -> str:
        """The picture as text, in lines of at most `width` characters.

        >>> result = table.delete_prefix({"id1": "B"})
        >>> print(table.layers().text(width=60).splitlines()[0])
        db.calendars by id1: 1 data file, 1 range delete file
        """
        return writing.lines(self.picture, width)

    def to_dict(self) -> dict[str, Any]:
        """Every file with its position, for JSON."""
        picture = self.picture
        return {
            "table": picture.name,
            "snapshot_id": picture.snapshot_id,
            "column": picture.collected.axis.column,
            "to_scale": picture.collected.axis.to_scale,
            "is_binned": self.is_binned,
            "files": [
                {name: value for name, value in asdict(span).items() if name != "is_reached" or span.kind == DATA}
                for span in picture.collected.spans
            ],
            "files_opened": list(picture.depth.files),
            "files_opened_with_deletes": list(picture.depth.reached),
        }

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return drawing.inline(self.picture)


def layers_of(
    view: SnapshotView, name: str, branch: str, *, column: str | None = None, to_scale: bool = True
) -> Layers:
    """The layers of a snapshot, which was reached by a branch; see `Table.layers`."""
    collected = collect(view, branch, column, to_scale=to_scale)
    snapshot_id = None if view.snapshot is None else view.snapshot.snapshot_id
    spans = collected.spans
    return Layers(Picture(name, snapshot_id, collected, arrange(spans), depth(spans)))
