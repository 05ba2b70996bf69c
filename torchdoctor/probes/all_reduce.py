"""Be one rank of an all_reduce, and say what is being done before it is done.

It runs in the interpreter under test, as a process of its own for each rank, with a JSON object as
its argument: ``rank``, ``world``, ``local_rank``, ``host`` and ``port`` of the meeting point (port
0: rank 0 takes a free one and writes it into the folder), ``folder`` for what it says, ``began``
(seconds since the epoch), ``backend`` (auto, nccl, gloo), ``device`` (auto, cuda, cpu), ``sweep``,
``numbers`` (elements of the first all_reduce), ``store`` (own, or the launcher's, which is there
already), ``attempt`` (a word for its keys), ``gather`` (what rank 0 tells those that will bring it
their records; null on one machine), ``share`` (whether ranks may use one GPU) and three limits in
seconds.

Each stage is announced (enter), each blocking call once more just before it is made (call), then
comes ok or error; facts go between. Standard library alone until the stage "import".

The parts are those of probes/ranks: whoever starts this lays them beside it, as torchdoctor_ranks.
"""

import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
if sys.path and sys.path[0] in ("", HERE):
    del sys.path[0]
sys.path.insert(0, HERE)  # Python may have been told not to
main = importlib.import_module("torchdoctor_ranks.main")
sys.path.remove(HERE)  # torch is to find what it finds without us

if __name__ == "__main__":
    main.run()
