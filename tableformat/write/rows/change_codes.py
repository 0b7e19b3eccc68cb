"""What a change event does, by the code in its operation column (CF-12)."""

from __future__ import annotations

from typing import Final

UPSERTS: Final = (
    *("I", "INSERT", "C", "CREATE", "R", "READ", "U", "UPDATE", "UPDATE_AFTER", "UPSERT"),
    *("UPDATE_POSTIMAGE", "+I", "+U"),
)
"""The event's row is in the table afterwards."""
DELETES: Final = ("D", "DELETE", "UPDATE_BEFORE", "UPDATE_PREIMAGE", "-U", "-D")
"""No row with the event's key is in the table afterwards. An update may change the key: the image of the row before it
deletes that row, and the image after it follows."""
TRUNCATES: Final = ("T", "TRUNCATE")
"""The table is empty afterwards."""
