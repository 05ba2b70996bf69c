"""For the training code itself: look at a loader before it costs a night, arm against a hang.

Installed by the extra ``torchdoctor[training]``; works inside the process that trains. Nothing
here imports torch before it is asked for something.
"""

from torchdoctor.training.arm import Armed, arm
from torchdoctor.training.auditing import Audit, audit
from torchdoctor.training.sanitizing import LoaderError, sanitize

__all__ = ["Armed", "Audit", "LoaderError", "arm", "audit", "sanitize"]
