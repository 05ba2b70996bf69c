"""Which NCCL and cuDNN a build of torch brings along.

Source: METADATA of the wheels, PyTorch's build scripts and RELEASE.md, per row in ``nccl.json``.
"""

from torchdoctor.tables import load


def bundled(torch: str, tag: str, platform: str) -> tuple[str | None, str | None] | None:
    """Return the NCCL and the cuDNN of *torch* built as *tag* ("cu132") for *platform*.

    Either may be None (unknown, or linked in without a version to see). None as a whole: no such
    row. Windows builds have no NCCL. Compare with ``torch.cuda.nccl.version()`` and
    ``torch.backends.cudnn.version()``, which report what was loaded.
    """
    row = load("nccl")["torch"].get(torch.partition("+")[0], {}).get(tag, {}).get(platform)
    return None if row is None else (row[0], row[1])
