"""A small run of the demo, and its expected rows."""

from __future__ import annotations

from tableformat.demo.messages import MessagePlan, message_batch

PLAN = MessagePlan(batch_count=3, messages_per_batch=300, key_count=400)


def expected_rows(plan: MessagePlan) -> dict[tuple[str, int], list[tuple]]:
    """The expected rows, computed with a dictionary: the last message of each business key in the order of the
    batches."""
    newest: dict[tuple[str, int], dict] = {}
    for batch in range(plan.batch_count):
        for message in message_batch(plan, batch).to_pylist():
            newest[message["id1"], message["id2"]] = message
    names = ("open_on", "closed_on", "delivery_on", "holiday_on")
    rows = {}
    for key, message in newest.items():
        longest = max(len(message[name]) for name in names)
        rows[key] = [
            (number + 1, *(message[name][number] if number < len(message[name]) else None for name in names))
            for number in range(longest)
        ]
    return rows
