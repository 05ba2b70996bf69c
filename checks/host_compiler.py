"""nvcc takes the C++ compiler of this machine when an extension is built.

How it shows: "#error -- unsupported GNU version! gcc versions later than 12 are not supported!",
the same of Microsoft Visual Studio or clang, or torch's "The current installed version of g++
(13.2.0) is greater than the maximum required version by CUDA 11.8", while flash-attn or another
extension is compiled.

Why: each CUDA toolkit knows the compilers of its time and refuses newer ones. torch itself is not
concerned: nothing is compiled when it is installed or run.

Not to be confused with a toolkit of another CUDA than torch (toolkit-mismatch).

The fix is an older compiler beside the newer one, named for this build; or a wheel that is already
built. ``-allow-unsupported-compiler`` may give wrong code.

Sources: include/crt/host_config.h of the toolkit; torch/utils/cpp_extension.py;
https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import effects, gpu, installers, shells, steps
from torchdoctor.facts import Platform, Symptom, Unknown
from torchdoctor.model import Commands, Evidence, Finding, Layer, Step

FAMILY = "system"
FINDS = ("host-compiler-too-new",)


def check(symptoms: tuple[Symptom, ...], platform: Platform | Unknown) -> Iterator[Finding]:
    """Read what nvcc or torch said of the compiler."""
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


def _older(values: Mapping[str, str], platform: Platform | Unknown) -> Step:
    windows = isinstance(platform, Platform) and platform.system == "win32"
    windows = windows or values.get("compiler") == "Microsoft Visual Studio"
    step = steps.by_hand(
        "use-older-compiler",
        "Install a Visual Studio release that this CUDA takes, and build from its prompt"
        if windows
        else "Build with an older gcc beside the present one",
        why="The compiler only has to be older for this one build.",
        layer=Layer.ENVIRONMENT,
        cost=steps.SMALL,
        effect=effects.settled("host-compiler-refused"),
    )
    major = values.get("newest", "").partition(".")[0]
    if windows or not major.isdigit():
        return step
    if values.get("cuda"):  # torch names the first that is refused
        major = str(int(major) - 1)
    install = Commands(bash=(f"sudo apt-get install -y gcc-{major} g++-{major}",))
    names = (
        ("CC", f"gcc-{major}"),
        ("CXX", f"g++-{major}"),
        ("NVCC_PREPEND_FLAGS", f"-ccbin g++-{major}"),
    )
    said = installers.join(*(shells.assign(name, value) for name, value in names))
    return replace(step, commands=installers.join(install, Commands(bash=said.bash)))
