"""Look into the shared objects that an import of torch takes, for the interpreter under test.

It runs in torchdoctor's own interpreter. Its argument is a JSON object: ``path``, folders to put on
sys.path, and ``cwd``, the user's working folder. A line before this source sets ``SAID``, JSON as
well, which is too long for a command line: ``said``, what the probe of the interpreter answered,
and ``help``, what the loader says of itself.
"""

import importlib
import json
import os
import sys


def main() -> None:
    """Take the record and say it."""
    channel = os.dup(1)
    os.dup2(2, 1)

    def say(**what: object) -> None:
        line = (json.dumps(what) + "\n").encode("ascii", "backslashreplace")
        while line:
            line = line[os.write(channel, line) :]

    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    sys.path[:] = [*(entry for entry in sys.path if entry), *options.get("path", [])]
    errors = {}
    try:
        given = json.loads(globals()["SAID"])
        inventory = importlib.import_module("torchdoctor.linux.inventory")
        layout = inventory.layout(given["said"], given["help"], options.get("cwd", "/"))
        answers = importlib.import_module("torchdoctor.linux.answers")
        say(record=answers.shortened(inventory.take(layout)))
    except Exception as failure:
        errors["record"] = "%s: %s" % (type(failure).__name__, str(failure)[:400])
    say(errors=errors, done=True)


main()
