from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.probes.recorded import MACHINES, NVRM, NVRM_OPEN, look, write
from tests.reading.test_nvidia_smi import DRIVER_450, DRIVER_580_MIG, DRIVER_610, ROW
from torchdoctor.child import Run, Stream
from torchdoctor.facts import Driver, Gpu, Unknown
from torchdoctor.reading import driver as reading
from torchdoctor.reading.driver import proc_release

PROBE = ("python", "-", "{}")
NO_LIBRARY: Mapping[str, object] = {
    "stage": "end",
    "library": None,
    "smi_needed": True,
    "errors": {"load libnvidia-ml.so.1": "cannot open shared object file: No such file"},
    "done": True,
}
NOTHING = Run(PROBE, "answered", data=NO_LIBRARY)
A100 = {
    "index": 0,
    "errors": {},
    "name": "NVIDIA A100-SXM4-40GB",
    "uuid": "GPU-1",
    "capability": [8, 0],
    "memory": 42949672960,
    "bus": "00000000:01:00.0",
    "mig": [0, 0],
    "compute_mode": 0,
    "fabric": {"state": 0, "status": 0},
}
HEALTHY: Mapping[str, object] = {
    "stage": "end",
    "library": "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.183.01",
    "smi_needed": False,
    "driver_version": "535.183.01",
    "nvml_version": "12.535.183.01",
    "nvml_cuda_version": 12020,
    "device_count": 1,
    "devices": [A100],
    "nvml_done": True,
    "cuda_driver_version": 12020,
    "errors": {},
    "done": True,
}


def answered(**changed: object) -> Run:
    return Run(PROBE, "answered", data={**HEALTHY, **changed})


def smi(text: str, *arguments: str, exit_code: int = 0, **known: object) -> Run:
    command = ("/usr/bin/nvidia-smi", *arguments)
    outcome = "failed" if exit_code or known.get("signal") else "answered"
    stdout = Stream(text, len(text))
    return Run(command, outcome, 0.1, exit_code, stdout=stdout, **known)  # type: ignore[arg-type]


def machine(name: str, folder: Path) -> Run:
    return look(write(folder / "root", MACHINES[name]), folder=folder)


def driver_of(facts: Mapping[str, object]) -> Driver:
    fact = facts["driver"]
    assert isinstance(fact, Driver), fact
    return fact


def gpus_of(facts: Mapping[str, object]) -> tuple[Gpu, ...]:
    fact = facts["gpus"]
    assert isinstance(fact, tuple), fact
    return fact


# ---- NVML -------------------------------------------------------------------------------------


def test_a_healthy_server_is_read_from_nvml_and_its_kernel(tmp_path: Path) -> None:
    facts = reading.read(answered(), None, machine("bare", tmp_path))
    assert facts["driver"] == Driver(
        release="535.183.01",
        cuda="12.2",
        source="nvml",
        kernel_module="535.183.01",
        library="535.183.01",
    )
    assert facts["gpus"] == (
        Gpu(
            name="NVIDIA A100-SXM4-40GB",
            index=0,
            capability=(8, 0),
            memory=42949672960,
            uuid="GPU-1",
            bus="00000000:01:00.0",
            mig=False,
            compute_mode="Default",
        ),
    )


def test_a_mismatch_has_both_releases_and_the_gpus_of_the_bus(tmp_path: Path) -> None:
    run = answered(
        library="/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.90.07",
        nvml_error={"code": 18, "text": "Driver/library version mismatch", "call": "nvmlInit"},
        **dict.fromkeys(("driver_version", "devices", "nvml_done", "nvml_cuda_version")),
    )
    facts = reading.read(run, None, machine("bare", tmp_path))
    driver = driver_of(facts)
    assert (driver.code, driver.error) == (18, "Driver/library version mismatch")
    assert (driver.kernel_module, driver.library) == ("535.183.01", "550.90.07")
    assert facts["gpus"] == (Gpu("", vendor="nvidia", bus="0000:01:00.0"),)


def test_a_hang_leaves_the_release_of_the_kernel_and_nothing_else(tmp_path: Path) -> None:
    run = Run(PROBE, "timeout", 10.0, data={"stage": "nvmlInit", "library": "loaded"})
    facts = reading.read(run, None, machine("bare", tmp_path))
    reason = "the driver did not answer in 10 s (nvmlInit)"
    assert facts["driver"] == Driver(
        release="535.183.01",
        source="nvml",
        kernel_module="535.183.01",
        library="535.183.01",
        error=reason,
        hung=True,
    )
    assert facts["gpus"] == Unknown(reason)


def test_a_hang_without_a_word_of_the_kernel_has_no_release() -> None:
    run = Run(PROBE, "timeout", 10.0, data={"stage": "nvmlInit"})
    driver = driver_of(reading.read(run))
    assert (driver.release, driver.hung) == (None, True)


def test_a_hang_after_nvml_has_answered_takes_nothing_back() -> None:
    data = {**HEALTHY, "stage": "cuDriverGetVersion", "done": None}
    facts = reading.read(Run(PROBE, "timeout", 10.0, data=data))
    assert driver_of(facts).hung is False
    assert len(gpus_of(facts)) == 1


def test_a_probe_that_did_not_even_start_says_nothing_of_the_driver() -> None:
    facts = reading.read(Run(PROBE, "timeout", 10.0))
    assert isinstance(facts["driver"], Unknown)
    assert "did not start" in facts["driver"].reason


def test_a_lost_gpu_is_the_drivers_error_and_others_stay_listed() -> None:
    lost = {"index": 1, "errors": {"handle": {"code": 15, "text": "GPU is lost"}}}
    facts = reading.read(answered(devices=[A100, lost]))
    assert (driver_of(facts).code, driver_of(facts).error) == (15, "GPU is lost")
    assert [gpu.index for gpu in gpus_of(facts)] == [0]


def test_a_call_that_one_gpu_refuses_leaves_that_member_open() -> None:
    refused = {k: v for k, v in A100.items() if k not in ("memory", "mig")}
    (gpu,) = gpus_of(reading.read(answered(devices=[refused])))
    assert (gpu.memory, gpu.mig, gpu.capability) == (None, None, (8, 0))


@pytest.mark.parametrize(
    ("states", "fabric"),
    [((3, 3), "running"), ((3, 1), "stopped"), ((2, 2), "stopped"), ((0, 0), None)],
)
def test_the_fabric_is_told_by_the_gpus(states: tuple[int, int], fabric: str | None) -> None:
    devices = [{**A100, "index": n, "fabric": {"state": s}} for n, s in enumerate(states)]
    assert driver_of(reading.read(answered(devices=devices))).fabric == fabric


@pytest.mark.parametrize(
    ("comm", "first", "fabric"),
    [
        ("nv-fabricmanage", "systemd", "running"),
        ("sshd", "systemd", "stopped"),
        ("sshd", "", None),
    ],
)
def test_beside_switches_the_fabric_manager_is_looked_for(
    comm: str, first: str, fabric: str | None, tmp_path: Path
) -> None:
    files = {
        **MACHINES["bare"],
        "dev/nvidia-nvswitch0": "",
        "proc/77/comm": f"{comm}\n",
        "proc/1/comm": first,
    }
    host = look(write(tmp_path / "root", files), folder=tmp_path)
    assert driver_of(reading.read(answered(), None, host)).fabric == fabric


# ---- nvidia-smi -------------------------------------------------------------------------------


def test_nvidia_smi_speaks_where_nvml_cannot_be_loaded() -> None:
    query = "--query-gpu=index,name,uuid,driver_version,compute_cap,memory.total,pci.bus_id"
    row = ROW.rpartition(", Enabled")[0]
    runs = {"nvidia-smi": smi(DRIVER_580_MIG), "nvidia-smi query": smi(row, query)}
    facts = reading.read(NOTHING, runs)
    driver = driver_of(facts)
    assert (driver.release, driver.cuda, driver.source) == ("580.126.09", "13.0", "nvidia-smi")
    assert [gpu.index for gpu in gpus_of(facts)] == [0, 7]


def test_the_query_is_preferred_when_it_lists_as_many() -> None:
    runs = {"nvidia-smi": smi(DRIVER_450), "nvidia-smi query": smi(ROW)}
    (gpu,) = gpus_of(reading.read(NOTHING, runs))
    assert gpu.capability == (8, 0)


def test_the_new_header_is_read_through_the_runs() -> None:
    driver = driver_of(reading.read(NOTHING, {"nvidia-smi": smi(DRIVER_610)}))
    assert (driver.release, driver.cuda) == ("610.43.03", "13.3")


def test_a_refused_column_leaves_the_table_to_tell() -> None:
    refused = smi('Field "compute_cap" is not a valid field to query.', exit_code=2)
    facts = reading.read(NOTHING, {"nvidia-smi query": refused, "nvidia-smi": smi(DRIVER_450)})
    assert driver_of(facts) == Driver(release="450.57", cuda="11.0", source="nvidia-smi")
    assert [gpu.name for gpu in gpus_of(facts)] == ["TITAN Xp"]


def test_an_nvidia_smi_that_hangs_is_a_hung_driver_and_unknown_gpus(tmp_path: Path) -> None:
    runs = {"nvidia-smi": Run(("nvidia-smi",), "timeout", 10.04)}
    facts = reading.read(NOTHING, runs, machine("docker-no-gpu", tmp_path))
    driver = driver_of(facts)
    assert (driver.hung, driver.release) == (True, "535.183.01")
    assert driver.source == "nvidia-smi"
    assert facts["gpus"] == Unknown("nvidia-smi did not answer in 10 s")


def test_a_mismatch_told_by_nvidia_smi_keeps_the_kernels_release(tmp_path: Path) -> None:
    text = (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90"
    )
    facts = reading.read(
        NOTHING, {"nvidia-smi": smi(text, exit_code=18)}, machine("bare", tmp_path)
    )
    driver = driver_of(facts)
    assert (driver.code, driver.library, driver.kernel_module) == (18, "550.90", "535.183.01")
    assert facts["gpus"] == (Gpu("", vendor="nvidia", bus="0000:01:00.0"),)


def test_two_numbers_of_a_release_are_completed_from_the_disk(tmp_path: Path) -> None:
    text = "NVML version : 535.183\nDRIVER version : 535.183.01\n"
    driver = driver_of(reading.read(NOTHING, {"a": smi(text)}, machine("bare", tmp_path)))
    assert driver.library == "535.183.01"


def test_rubbish_is_garbage_and_names_no_release() -> None:
    runs = {"nvidia-smi": smi("\ufffd\x00 rubbish"), "nvidia-smi query": smi("more of it")}
    facts = reading.read(NOTHING, runs)
    driver = driver_of(facts)
    assert (driver.garbage, driver.release, driver.error) == (True, None, None)
    assert isinstance(facts["gpus"], Unknown)


def test_rubbish_of_one_run_does_not_spoil_the_other() -> None:
    runs = {"nvidia-smi": smi("rubbish"), "nvidia-smi query": smi(ROW)}
    driver = driver_of(reading.read(NOTHING, runs))
    assert (driver.garbage, driver.release) == (False, "580.95.05")


def test_an_exit_code_is_a_number_of_nvml_when_the_words_are_not_known() -> None:
    driver = driver_of(reading.read(NOTHING, {"nvidia-smi": smi("???", exit_code=9)}))
    assert (driver.code, driver.garbage) == (9, False)


def test_an_nvidia_smi_that_dies_of_a_signal_is_an_error() -> None:
    driver = driver_of(reading.read(NOTHING, {"nvidia-smi": smi("", signal="SIGSEGV")}))
    assert driver.error == "nvidia-smi ended with SIGSEGV"


def test_words_on_the_error_stream_are_read_too() -> None:
    stderr = Stream("Failed to initialize NVML: Unknown Error\n", 41)
    run = Run(("nvidia-smi",), "failed", 0.1, 255, stderr=stderr)
    assert driver_of(reading.read(NOTHING, {"nvidia-smi": run})).code == 999


# ---- absent, or only out of reach ---------------------------------------------------------------


def test_a_machine_without_any_trace_has_no_driver(tmp_path: Path) -> None:
    facts = reading.read(NOTHING, None, machine("rocm", tmp_path))
    assert facts["driver"] is None


def test_amd_gpus_are_told_by_their_own_driver_and_by_the_bus(tmp_path: Path) -> None:
    facts = reading.read(NOTHING, None, machine("rocm", tmp_path))
    assert facts["gpus"] == (
        Gpu("", vendor="amd", memory=206141652992, bus="0000:05:00.0", gfx="gfx942"),
        Gpu("", vendor="amd", bus="0000:09:00.0"),
    )


@pytest.mark.parametrize(
    ("version", "gfx"),
    [(90010, "gfx90a"), (90402, "gfx942"), (100300, "gfx1030"), (110000, "gfx1100"), (0, None)],
)
def test_gfx_names_have_hexadecimal_digits(version: int, gfx: str | None, tmp_path: Path) -> None:
    path = "sys/class/kfd/kfd/topology/nodes/1/properties"
    host = look(
        write(tmp_path / "root", {path: f"gfx_target_version {version}\n"}), folder=tmp_path
    )
    gpus = gpus_of(reading.read(NOTHING, None, host))
    assert [gpu.gfx for gpu in gpus] == ([gfx] if gfx else [])


def test_a_gpu_on_the_bus_without_a_driver_is_still_a_gpu(tmp_path: Path) -> None:
    files = {path: text for path, text in MACHINES["bare"].items() if path.startswith("sys/bus")}
    host = look(write(tmp_path / "root", files), folder=tmp_path)
    facts = reading.read(NOTHING, None, host)
    assert facts["driver"] is None
    assert facts["gpus"] == (Gpu("", vendor="nvidia", bus="0000:01:00.0"),)


def test_a_container_without_its_hosts_libraries_has_the_driver_out_of_reach(
    tmp_path: Path,
) -> None:
    driver = driver_of(reading.read(NOTHING, None, machine("docker-no-gpu", tmp_path)))
    assert (driver.release, driver.kernel_module, driver.library) == (
        *("535.183.01", "535.183.01"),
        None,
    )
    assert "the module nvidia" in (driver.error or "")


def test_a_wsl_without_the_driver_of_windows_has_none(tmp_path: Path) -> None:
    files = {k: v for k, v in MACHINES["wsl2"].items() if not k.startswith("usr/lib/wsl")}
    host = look(write(tmp_path / "root", files), folder=tmp_path)
    assert reading.read(NOTHING, None, host)["driver"] is None


def test_the_library_of_wsl_is_not_taken_for_one_on_disk(tmp_path: Path) -> None:
    stale = {"usr/lib/x86_64-linux-gnu/libcuda.so.470.10": "", **MACHINES["wsl2"]}
    host = look(write(tmp_path / "root", stale), folder=tmp_path)
    run = answered(library="/usr/lib/wsl/lib/libnvidia-ml.so.1", driver_version="560.94")
    driver = driver_of(reading.read(run, None, host))
    assert (driver.release, driver.library, driver.kernel_module) == ("560.94", None, None)


def test_a_jetson_needs_no_nvml_and_has_its_gpu(tmp_path: Path) -> None:
    run = Run(PROBE, "answered", data={**NO_LIBRARY, "cuda_driver_version": 12060})
    facts = reading.read(run, None, machine("jetson", tmp_path))
    driver = driver_of(facts)
    assert (driver.error, driver.cuda) == (None, "12.6")
    assert facts["gpus"] == (Gpu("", vendor="nvidia"),)


def test_copies_of_libcuda_in_a_toolkit_are_no_driver(tmp_path: Path) -> None:
    files = {"usr/local/cuda-12.4/compat/libcuda.so.550.54.14": "", "sys/module/x": ""}
    host = look(write(tmp_path / "root", files), folder=tmp_path)
    run = Run(PROBE, "answered", data={**NO_LIBRARY, "cuda_driver_version": 12040})
    assert reading.read(run, None, host)["driver"] is None


def test_the_library_on_disk_is_the_drivers_and_not_a_toolkits(tmp_path: Path) -> None:
    compat = "usr/local/cuda-12.4/compat/libnvidia-ml.so.550.54.14"
    files = {**MACHINES["bare"], compat: ""}
    host = look(write(tmp_path / "root", files), folder=tmp_path)
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    runs = {"nvidia-smi": smi(text, exit_code=9)}
    assert driver_of(reading.read(NOTHING, runs, host)).library == "535.183.01"


def test_without_a_look_at_the_machine_absence_is_not_sure() -> None:
    facts = reading.read(NOTHING)
    assert facts["driver"] == Unknown("the machine itself was not looked at")
    assert facts["gpus"] == Unknown("the machine itself was not looked at")


def test_a_piece_of_the_machine_that_failed_makes_absence_unsure(tmp_path: Path) -> None:
    host = machine("rocm", tmp_path)
    data = {k: v for k, v in host.data.items() if k != "kernel"}
    driver = reading.read(NOTHING, None, Run(PROBE, "answered", data=data))["driver"]
    assert isinstance(driver, Unknown)
    assert "kernel" in driver.reason


def test_a_mac_has_no_driver_and_the_gpu_of_its_chip() -> None:
    mac = Run(
        PROBE,
        "answered",
        data={
            "system": {"platform": "darwin", "sysctl": {"hw.optional.arm64": 1}},
            "cpu": {"sysctl": {"machdep.cpu.brand_string": "Apple M2"}},
            **dict.fromkeys(("pci", "kfd", "tegra")),
            "kernel": {},
            "device_nodes": [],
            "driver_files": {},
        },
    )
    quiet = Run(PROBE, "answered", data={"stage": "end", "library": None, "smi_needed": False})
    facts = reading.read(quiet, None, mac)
    assert facts == {"driver": None, "gpus": (Gpu("Apple M2", vendor="apple"),)}


def test_on_windows_gpus_without_a_driver_cannot_be_told() -> None:
    windows = Run(
        PROBE,
        "answered",
        data={
            "system": {"platform": "win32"},
            **dict.fromkeys(("pci", "kfd", "tegra")),
            "kernel": {},
            "cpu": {},
            "device_nodes": [],
            "driver_files": {"libraries": [], "nvidia_smi": []},
        },
    )
    facts = reading.read(NOTHING, None, windows)
    assert facts["driver"] is None
    assert isinstance(facts["gpus"], Unknown)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (NVRM, "535.183.01"),
        (NVRM_OPEN, "580.95.05"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  59`", None),
        ("GCC version:  gcc version 11.4.0", None),
        ("", None),
    ],
)
def test_the_kernels_text_names_the_release_of_both_modules(text: str, release: str | None) -> None:
    assert proc_release(text) == release


# ---- hostile ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"devices": "two"},
        {"devices": [1]},
        {"devices": [{**A100, "capability": "8.0"}]},
        {"devices": [{**A100, "capability": [8, True]}]},
        {"devices": [{**A100, "memory": -1}]},
        {"nvml_cuda_version": "12.2"},
        {"nvml_error": []},
        {"library": 7},
        {"smi_needed": "no"},
    ],
)
def test_an_answer_of_another_shape_is_unknown(changed: dict[str, object]) -> None:
    facts = reading.read(answered(**changed))
    assert isinstance(facts["driver"], Unknown)
    assert isinstance(facts["gpus"], Unknown)


def test_a_release_that_is_none_is_not_taken_over() -> None:
    assert driver_of(reading.read(answered(driver_version="; rm -rf /"))).release is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.just("nvmlInit"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*A100, "code", "text", "handle", "state"]), inner)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*HEALTHY, "nvml_error"]), VALUES),
    st.dictionaries(
        st.sampled_from(
            ["system", "kernel", "pci", "kfd", "tegra", "cpu", "device_nodes", "driver_files"]
        ),
        VALUES,
    ),
    st.sampled_from(["answered", "failed", "timeout", "not-started"]),
)
@settings(max_examples=200, deadline=None)
def test_no_answer_makes_the_reader_raise(
    data: dict[str, object], host: dict[str, object], outcome: str
) -> None:
    run = Run(PROBE, outcome, data=data)  # type: ignore[arg-type]
    facts = reading.read(run, None, Run(PROBE, "answered", data=host))
    assert isinstance(facts["driver"], Driver | Unknown | None)
    assert isinstance(facts["gpus"], tuple | Unknown)
