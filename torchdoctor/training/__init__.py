"""For the training code itself: look at a loader before it costs a night.

Installed by the extra ``torchdoctor[training]``; works inside the process that trains.
"""

from torchdoctor.training.auditing import Audit, audit

__all__ = ["Audit", "audit"]
