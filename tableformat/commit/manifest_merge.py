"""Merges small manifests, so that thousands of small commits leave few manifests and each commit stays cheap.

Only manifests of earlier snapshots with the same kind and partition spec are merged, newest first. A manifest is
included while it is not larger than all newer ones together:

    sizes, oldest to newest      900 | 210  60 | 5 5 5 5 5 ... 5          100 small ones exist: merge them
    merge              900 | 210  60 | 500                      60 is smaller than 500, so it joins; 900 is not read
                                 900 | 770

An entry is therefore written again only if its manifest at least doubles: a logarithmic number of times, up to the
target size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from tableformat import properties as names
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile

MERGE_ENABLED: Final = "commit.manifest-merge.enabled"

Item = TypeVar("Item")
MergeManifests: TypeAlias = Callable[[Sequence[ManifestFile]], ManifestFile]
"""Writes one manifest that holds the live entries of several."""


def merge_small_manifests(
    manifests: Sequence[ManifestFile], properties: Mapping[str, str], merge: MergeManifests
) -> tuple[ManifestFile, ...]:
    """CP-15: the manifests of the parent snapshot; small ones are merged if there are enough of them."""
    if properties.get(MERGE_ENABLED, "true").lower() == "false":
        return tuple(manifests)
    min_count = names.positive_int(
        properties, names.MANIFEST_MIN_COUNT_TO_MERGE, names.MANIFEST_MIN_COUNT_TO_MERGE_DEFAULT
    )
    target_bytes = names.positive_int(
        properties, names.MANIFEST_TARGET_SIZE_BYTES, names.MANIFEST_TARGET_SIZE_BYTES_DEFAULT
    )
    groups: defaultdict[tuple[ManifestContent, int], list[ManifestFile]] = defaultdict(list)
    for manifest in manifests:
        groups[manifest.content, manifest.partition_spec_id].append(manifest)
    replaced: set[str] = set()
    merged: list[ManifestFile] = []
    for group in groups.values():
        for bin_ in choose_bins(group, min_count, target_bytes):
            merged.append(merge(bin_))
            replaced.update(manifest.manifest_path for manifest in bin_)
    return (*merged, *(manifest for manifest in manifests if manifest.manifest_path not in replaced))


def choose_bins(
    manifests: Iterable[ManifestFile], min_count: int, target_bytes: int
) -> tuple[tuple[ManifestFile, ...], ...]:
    """The groups of manifests of one kind and spec to merge into one manifest each; none below `min_count` small
    manifests."""
    # At most half the target size: then any two fit into one bin, and a full bin is not considered again.
    small = [manifest for manifest in manifests if manifest.manifest_length_bytes <= target_bytes // 2]
    if len(small) < max(min_count, 2):
        return ()
    small.sort(key=lambda manifest: manifest.sequence_number or 0, reverse=True)
    # A bin with one manifest would only be copied.
    bins = bins_of(_comparable(small), lambda manifest: manifest.manifest_length_bytes, target_bytes)
    return tuple(bin_ for bin_ in bins if len(bin_) > 1)


def _comparable(newest_first: Sequence[ManifestFile]) -> list[ManifestFile]:
    """The newest manifests, up to the first that is larger than all newer ones together."""
    chosen: list[ManifestFile] = []
    total_bytes = 0
    for manifest in newest_first:
        if len(chosen) > 1 and manifest.manifest_length_bytes > total_bytes:
            break
        chosen.append(manifest)
        total_bytes += manifest.manifest_length_bytes
    return chosen


def bins_of(
    items: Iterable[Item], size_bytes: Callable[[Item], int], target_bytes: int
) -> tuple[tuple[Item, ...], ...]:
    """Adjacent items, grouped into bins of at most the target size; a larger item has a bin of its own."""
    bins: list[list[Item]] = []
    filled_bytes = 0
    for item in items:
        if not bins or filled_bytes + size_bytes(item) > target_bytes:
            bins.append([])
            filled_bytes = 0
        bins[-1].append(item)
        filled_bytes += size_bytes(item)
    return tuple(map(tuple, bins))
