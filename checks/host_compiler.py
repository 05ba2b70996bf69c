"""There is a C++ compiler where something has to be compiled, and nvcc takes it.

How it shows: "#error -- unsupported GNU version! gcc versions later than 12 are not supported!",
the same of Microsoft Visual Studio or clang, or torch's "The current installed version of g++
(13.2.0) is greater than the maximum required version by CUDA 11.8", while flash-attn or another
extension is compiled (host-compiler-too-new). Or there is none (host-compiler-missing): "Compiler:
cl is not found", "Failed to find C compiler. Please specify via CC environment variable" from
torch.compile and triton, "Microsoft Visual C++ 14.0 or greater is required" from a build.

Why: torch.compile writes C++ and has it compiled, also for a GPU; slim images, and Windows, bring
no compiler, and on Windows cl.exe is on PATH only in Visual Studio's own prompt. Each CUDA toolkit
knows the compilers of its time and refuses newer ones. torch itself is not concerned: nothing is
compiled when it is installed or run.

Not to be confused with a toolkit of another CUDA than torch (toolkit-mismatch), or with Python.h
that is missing (python-dev-files-missing): then the compiler was found.

The fix is a compiler where there is none; an older compiler beside the newer one, named for this
build; or a wheel that is already built. ``-allow-unsupported-compiler`` may give wrong code.

Sources: include/crt/host_config.h of the toolkit; torch/utils/cpp_extension.py and
torch/_inductor/cpp_builder.py;
https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy
"""

from collections.abc import Iterator, Mapping

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import Facts, Platform, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Step

FAMILY = "system"
FINDS = ("host-compiler-too-new", "host-compiler-missing")


def check(
    symptoms: tuple[Symptom, ...], platform: Platform | Unknown, facts: Facts
) -> Iterator[Finding]:
    """Read what nvcc, torch or an installer said of the compiler."""
    if absent := gpu.symptom(symptoms, "host-compiler-not-found"):
        yield _absent(absent, platform, facts)
    said = gpu.symptom(symptoms, "host-compiler-refused")
    if said is None:
        return
    values = said.values
    compiler = values.get("command") or f"the {values.get('compiler', 'C++')} compiler"
    which = f"{compiler} {values.get('version', '')}".strip()
    cuda = f" of CUDA {values['cuda']}" if values.get("cuda") else ""
    newest = values.get("newest")
    limit = f"; up to {newest} is taken" if newest and not values.get("cuda") else ""
    limit = f"; below {newest} is taken" if newest and values.get("cuda") else limit
    yield Finding(
        "host-compiler-too-new",
        "error",
        f"nvcc{cuda} refuses {which} as too new{limit}, so nothing can be compiled with it.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (_older(values, platform),),
    )


def _absent(said: Symptom, platform: Platform | Unknown, facts: Facts) -> Finding:
    compiler = said.values.get("compiler", "")
    windows = compiler == "cl" or said.values.get("system") == "win32"
    windows = windows or (isinstance(platform, Platform) and platform.system == "win32")
    which = f"No C++ compiler is found{f' ({compiler})' if compiler else ''}"
    return Finding(
        "host-compiler-missing",
        "error",
        f"{which}, which torch.compile, triton or the build of a package needs; the GPU and torch"
        " are not at fault.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (
            steps.compiling.compiler(
                facts, windows=windows, effect=effects.settled("host-compiler-not-found")
            ),
        ),
        confidence="likely",
    )


def _older(values: Mapping[str, str], platform: Platform | Unknown) -> Step:
    windows = isinstance(platform, Platform) and platform.system == "win32"
    windows = windows or values.get("compiler") == "Microsoft Visual Studio"
    major = values.get("newest", "").partition(".")[0]
    major = major if major.isdigit() else ""
    if major and values.get("cuda"):  # torch names the first that is refused
        major = str(int(major) - 1)
    return steps.compiling.older_compiler(major, windows=windows)
