"""NCCL's network plug-in, where there is one, fits the NCCL of torch and the network.

How it shows: "NET/OFI Request completed with error", "NET/OFI Couldn't open a fabric access
domain", "NET/Plugin : dlerror=... undefined symbol", mostly on AWS (EFA) or Slingshot (cxi).

Why: a plug-in (aws-ofi-nccl) is built for certain releases of NCCL and of libfabric. An image with
a newer torch brings a newer NCCL; a host with another EFA installer brings another libfabric.

Neighbours: "Failed to find ncclCollNetPlugin symbol", "NET/Plugin: No plugin found" and the like
are information: NCCL tries one version after the other, and then goes on without.

The fix is the plug-in's release for this NCCL and libfabric. To prove it, NCCL_NET_PLUGIN=none (or
NCCL_NET=Socket) goes without, slowly.

Sources: https://github.com/aws/aws-ofi-nccl/issues/161,
https://github.com/aws/aws-ofi-nccl/issues/801, https://github.com/NVIDIA/nccl/issues/1928
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding

FAMILY = "distributed"
FINDS = ("nccl-net-plugin-mismatch",)


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Read what the plug-in says."""
    failed = distributed.first(symptoms, "net-plugin-failed")
    if failed is None:
        return
    plugin = distributed.first(symptoms, "net-plugin")
    nccl = distributed.first(symptoms, "nccl-version-line")
    which = f"aws-ofi-nccl {plugin.values['version']}" if plugin else "NCCL's network plug-in"
    beside = f" beside NCCL {nccl.values['version']}" if nccl else ""
    yield Finding(
        "nccl-net-plugin-mismatch",
        "error",
        f"{which}{beside} fails ({failed.values.get('reason', 'error').rstrip('=')}): it does not"
        " fit this NCCL, or the libfabric and the network of this machine.",
        distributed.seen(failed, plugin, nccl),
        (
            distributed.in_launch(
                "fit-net-plugin",
                "Install the release of the plug-in (and of libfabric, the EFA installer) that is"
                " for this NCCL; NCCL_NET_PLUGIN=none proves that it is the plug-in",
                why="A plug-in is built for certain releases of NCCL and of libfabric.",
                settles=("net-plugin-failed",),
                bash=("export NCCL_NET_PLUGIN=none",),
            ),
        ),
        confidence="likely",
    )
