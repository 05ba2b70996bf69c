from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchdoctor import child, registry
from torchdoctor.child import Run
from torchdoctor.facts import Build, Driver, Facts, Gpu, Unknown
from torchdoctor.reading import driver as reading
from torchdoctor.resource import read_text
from torchdoctor.run import looked

NVML = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, sub; char bus_id[32]; } pci_t;
typedef struct { unsigned char cluster[16]; int status; unsigned clique; unsigned char state; }
    fabric_t;
static int is(const char *mode) {
    const char *now = getenv("STANDIN");
    return now && !strcmp(now, mode);
}
int nvmlInitWithFlags(unsigned flags) {
    if (write(1, "hello from a library\n", 21) != 21) return 999;
    if (is("mismatch")) return 18;
    if (is("hang")) for (;;) pause();
    if (is("crash")) *(volatile int *)0 = 1;
    return 0;
}
const char *nvmlErrorString(int code) {
    return code == 18 ? "Driver/library version mismatch" : "GPU is lost";
}
int nvmlSystemGetDriverVersion(char *out, unsigned n) { strncpy(out, "580.95.05", n); return 0; }
int nvmlSystemGetNVMLVersion(char *out, unsigned n) { strncpy(out, "13.580.95", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *out) { *out = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    if (is("hang-second") && index == 1) for (;;) pause();
    if (is("lost") && index == 1) return 15;
    *out = (void *)(size_t)(index + 1);
    return 0;
}
int nvmlDeviceGetName(void *d, char *out, unsigned n) {
    strncpy(out, d == (void *)1 ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-40GB", n);
    return 0;
}
int nvmlDeviceGetUUID(void *d, char *out, unsigned n) {
    strncpy(out, "GPU-11111111-2222-3333-4444-555555555550", n);
    out[39] += (char)(size_t)d;
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor) {
    *major = d == (void *)1 ? 9 : 8;
    *minor = 0;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *d, memory_t *out) { out->total = 1ULL << 36; return 0; }
int nvmlDeviceGetPciInfo_v3(void *d, pci_t *out) {
    memset(out, 0, sizeof *out);
    strcpy(out->bus_id, "00000000:01:00.0");
    return 0;
}
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *next) {
    if (d == (void *)1) return 3;
    *now = *next = 1;
    return 0;
}
int nvmlDeviceGetComputeMode(void *d, int *out) { *out = 3; return 0; }
int nvmlDeviceGetPersistenceMode(void *d, int *out) { *out = 1; return 0; }
int nvmlDeviceGetGpuFabricInfo(void *d, fabric_t *out) {
    out->status = 0;
    out->state = 3;
    return 0;
}
"""
CUDA = "int cuDriverGetVersion(int *out) { *out = 12080; return 0; }\n"

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux",
    reason="the stand-in libraries are built with gcc for Linux",
)


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-ins; the one for NVML behaves as STANDIN says."""
    folder = tmp_path_factory.mktemp("libraries")
    for name, source in (("libnvidia-ml.so.580.95.05", NVML), ("libcuda.so.570.10", CUDA)):
        short = name.partition(".so.")[0] + ".so.1"
        (folder / f"{name}.c").write_text(source, encoding="ascii")
        build = ("gcc", "-shared", "-fPIC", "-O0", "-w", f"-Wl,-soname,{short}", "-o", name)
        subprocess.run([*build, f"{name}.c"], cwd=folder, check=True)
        (folder / short).symlink_to(name)
    return folder


def ask(folder: Path, libraries: Path | None, standin: str = "", timeout: float = 30) -> Run:
    """Run the driver probe as torchdoctor does, with the stand-ins where libraries are sought."""
    environ = {"PATH": os.environ["PATH"], "STANDIN": standin}
    if libraries:
        environ["LD_LIBRARY_PATH"] = str(libraries)
    return child.run_probe(
        read_text("probes", "driver.py"),
        {"path": [entry for entry in sys.path if entry]},
        python=(sys.executable, "-I"),
        timeout=timeout,
        folder=str(folder),
        environ=environ,
    )


def test_a_healthy_driver_tells_its_release_and_its_gpus(tmp_path: Path, libraries: Path) -> None:
    run = ask(tmp_path, libraries)
    assert run.outcome == "answered"
    facts = reading.read(run)
    assert facts["driver"] == Driver(
        release="580.95.05",
        cuda="13.0",
        source="nvml",
        library="580.95.05",
        cuda_library=str(libraries / "libcuda.so.570.10"),
        fabric="running",
    )
    assert facts["gpus"] == (
        Gpu(
            name="NVIDIA H100 80GB HBM3",
            index=0,
            capability=(9, 0),
            memory=1 << 36,
            uuid="GPU-11111111-2222-3333-4444-555555555551",
            bus="00000000:01:00.0",
            compute_mode="Exclusive_Process",
        ),
        Gpu(
            name="NVIDIA A100-SXM4-40GB",
            index=1,
            capability=(8, 0),
            memory=1 << 36,
            uuid="GPU-11111111-2222-3333-4444-555555555552",
            bus="00000000:01:00.0",
            mig=True,
            compute_mode="Exclusive_Process",
        ),
    )
    assert run.data["cuda_driver_version"] == 12080
    assert run.data["smi_needed"] is False


def test_the_libcuda_that_the_loader_takes_foretells_the_error(
    tmp_path: Path, libraries: Path
) -> None:
    compat = tmp_path / "cuda-12.8" / "compat"
    compat.mkdir(parents=True)
    shutil.copy(libraries / "libcuda.so.570.10", compat)
    (compat / "libcuda.so.1").symlink_to("libcuda.so.570.10")
    path = f"{compat}:{libraries}"
    facts = Facts(
        **reading.read(ask(tmp_path, Path(path))),  # type: ignore[arg-type]
        torch=Build("2.11.0+cu128", cuda="12.8"),
        variables={"LD_LIBRARY_PATH": path},
    )
    check = registry.load("compat_libs")
    (found,) = looked(check, facts).findings
    assert found.evidence[0].value == str(compat / "libcuda.so.570.10")
    assert "does not work with driver 580.95.05 or its GPU (error 803)" in found.summary
    after = found.steps[0].effect(facts)
    assert not looked(check, after).findings


def test_what_the_library_prints_is_no_answer(tmp_path: Path, libraries: Path) -> None:
    run = ask(tmp_path, libraries)
    assert run.stdout.text == ""
    assert run.stderr.text == "hello from a library\n"


def test_a_mismatch_is_told_by_its_number_and_libcuda_is_asked_all_the_same(
    tmp_path: Path, libraries: Path
) -> None:
    run = ask(tmp_path, libraries, "mismatch")
    assert run.outcome == "answered"
    driver = reading.read(run)["driver"]
    assert isinstance(driver, Driver)
    assert (driver.code, driver.error) == (18, "Driver/library version mismatch")
    assert (driver.library, driver.cuda) == ("580.95.05", "12.8")


def test_a_driver_that_never_answers_is_hung_and_nothing_else_is_concluded(
    tmp_path: Path, libraries: Path
) -> None:
    run = ask(tmp_path, libraries, "hang", timeout=3)
    assert (run.outcome, run.data["stage"]) == ("timeout", "nvmlInit")
    facts = reading.read(run)
    driver, gpus = facts["driver"], facts["gpus"]
    assert isinstance(driver, Driver)
    assert isinstance(gpus, Unknown)
    assert driver.hung
    assert "nvmlInit" in gpus.reason


def test_a_gpu_that_never_answers_leaves_the_release_known(tmp_path: Path, libraries: Path) -> None:
    run = ask(tmp_path, libraries, "hang-second", timeout=3)
    facts = reading.read(run)
    driver, gpus = facts["driver"], facts["gpus"]
    assert isinstance(driver, Driver)
    assert (driver.hung, driver.release) == (True, "580.95.05")
    assert isinstance(gpus, Unknown)
    assert "device 1" in gpus.reason


def test_a_library_that_crashes_is_named_with_the_call_that_it_died_in(
    tmp_path: Path, libraries: Path
) -> None:
    run = ask(tmp_path, libraries, "crash")
    assert (run.outcome, run.signal) == ("failed", "SIGSEGV")
    driver = reading.read(run)["driver"]
    assert isinstance(driver, Driver)
    assert driver.error == "NVML ended the process (SIGSEGV) in nvmlInit"


def test_a_lost_gpu_is_an_error_and_the_others_are_listed(tmp_path: Path, libraries: Path) -> None:
    facts = reading.read(ask(tmp_path, libraries, "lost"))
    driver, gpus = facts["driver"], facts["gpus"]
    assert isinstance(driver, Driver)
    assert (driver.code, driver.error, driver.release) == (15, "GPU is lost", "580.95.05")
    assert isinstance(gpus, tuple)
    assert [gpu.index for gpu in gpus] == [0]


def test_without_a_library_nvidia_smi_is_asked_for(tmp_path: Path) -> None:
    run = ask(tmp_path, None)
    if run.data["library"] is not None:
        pytest.skip("this machine has an NVIDIA driver")
    assert run.outcome == "answered"
    assert run.data["smi_needed"] is True


def test_a_library_that_cannot_be_loaded_is_not_taken_for_none(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "libnvidia-ml.so.1").write_bytes(b"")
    run = ask(tmp_path, folder)
    errors = run.data["errors"]
    assert isinstance(errors, dict)
    assert "file too short" in errors["load libnvidia-ml.so.1"]
    driver = reading.read(run)["driver"]
    assert isinstance(driver, Driver)
    assert "file too short" in (driver.error or "")
