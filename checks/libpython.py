"""Whether the shared library of the running Python can be found by compiled parts.

``libpython3.10.so.1.0: cannot open shared object file``: a compiled part (a torch built from
source, an extension, an embedding program) links to libpython, and the loader does not look where
this Python keeps it: pyenv, uv, conda and builds under ``/opt`` have it in their own ``lib``.

It is not a fault of torch: its wheels do not link to libpython.

The fix is to name that folder in ``LD_LIBRARY_PATH``; the Python must have been built with
``--enable-shared``.

Sources: https://docs.python.org/3/using/configure.html, ld.so(8)
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import effects, places, steps
from torchdoctor.facts import Facts, Interpreter, Symptom, Unknown
from torchdoctor.model import Commands, Evidence, Finding, Step

FAMILY = "system"
FINDS = ("libpython-not-found",)

_LIBRARY = re.compile(r"libpython(\d\.\d+)\w*\.(so|dylib)")


def check(
    symptoms: tuple[Symptom, ...],
    interpreter: Interpreter | Unknown,
    variables: Mapping[str, str] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read which libpython was not found."""
    told = [
        s
        for s in symptoms
        if s.name in ("shared-library-missing", "dyld-library-missing")
        and _LIBRARY.search(s.values.get("library", ""))
    ]
    if not told:
        return
    library = places.last(told[0].values["library"])
    folder = _folder(interpreter)
    yield Finding(
        "libpython-not-found",
        "error",
        f"The loader does not find {library}, which a compiled part is linked to"
        + (f"; this Python keeps its own in {folder}." if folder else "."),
        (
            Evidence("symptoms", told[0].text.strip()[:300], told[0].source),
            *([Evidence("interpreter.base_prefix", folder, "sys")] if folder else []),
        ),
        (_step(folder, variables, facts),),
    )


def _folder(interpreter: Interpreter | Unknown) -> str | None:
    if isinstance(interpreter, Unknown) or interpreter.redacted or not interpreter.base_prefix:
        return None
    return places.join(interpreter.base_prefix, "lib")


def _step(folder: str | None, variables: Mapping[str, str] | Unknown, facts: Facts) -> Step:
    mac = not isinstance(facts.platform, Unknown) and facts.platform.system == "darwin"
    variable = "DYLD_LIBRARY_PATH" if mac else "LD_LIBRARY_PATH"
    before = "" if isinstance(variables, Unknown) else variables.get(variable, "")
    if folder is None:
        return _asked(variable)
    value = f"{folder}:{before}" if before else folder
    step = steps.set_variable(variable, value, why="The loader looks there then.")
    return replace(
        step,
        commands=Commands(bash=step.commands.bash),
        effect=effects.then(step.effect, effects.untried),
    )


def _asked(variable: str) -> Step:
    """Return the step where it is not known what folder it is: the Python itself is asked."""
    ask = "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))"
    return replace(
        steps.set_variable(variable, "", why="The loader looks there then."),
        title=f"Put the lib folder of this Python on {variable}, here and for good",
        commands=Commands(
            bash=(f'export {variable}="$(python -c "{ask}")${{{variable}:+:${variable}}}"',)
        ),
        effect=effects.untried,
    )
