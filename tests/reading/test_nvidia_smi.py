from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdoctor.facts import Driver, Gpu
from torchdoctor.reading import nvidia_smi
from torchdoctor.reading.nvidia_smi import read

MIB = 1 << 20

# From a public report of cBio/cbio-cluster
DRIVER_331 = """\
Fri Apr 18 12:26:18 2014
+------------------------------------------------------+
| NVIDIA-SMI 331.62     Driver Version: 331.62         |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  GeForce GTX 680     Off  | 0000:03:00.0     N/A |                  N/A |
| 30%   35C  N/A     N/A /  N/A |      9MiB /  4095MiB |     N/A      Default |
+-------------------------------+----------------------+----------------------+
|   1  GeForce GTX 680     Off  | 0000:04:00.0     N/A |                  N/A |
| 30%   35C  N/A     N/A /  N/A |      9MiB /  4095MiB |     N/A      Default |
+-------------------------------+----------------------+----------------------+
"""
# From a public report of rossumai/nvgpu
DRIVER_450 = """\
Wed Jul 29 21:51:11 2020
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 450.57       Driver Version: 450.57       CUDA Version: 11.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  TITAN Xp            On   | 00000000:17:00.0 Off |                  N/A |
| 23%   39C    P8     9W / 250W |      7MiB / 12196MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
"""
# A public MIG guide: two A100, the first split
DRIVER_580_MIG = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.126.09             Driver Version: 580.126.09     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:10:1C.0 Off |                   On |
| N/A   40C    P0             43W /  400W |     249MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   7  NVIDIA A100-SXM4-40GB          On  |   00000000:BD:00.0 Off |                   On |
| N/A   34C    P0             69W /  400W |       0MiB /  40960MiB |     N/A   E. Process |
|                                         |                        |            Disabled* |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|
|  0    2   0   0  |             142MiB / 20096MiB    | 56      0 |  4   0    2    0    0 |
|                  |               0MiB / 12211MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
|  0    3   0   1  |              71MiB /  9984MiB    | 14      0 |  2   0    1    0    0 |
|                  |               0MiB /  6105MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A     23824      C   python                                      10725MiB |
+-----------------------------------------------------------------------------------------+
"""
# From a public report of projectbluefin/finpilot
DRIVER_610 = """\
Mon Jul 20 06:15:02 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.03              KMD Version: 610.43.03     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 3080 ...    Off |   00000000:01:00.0 Off |                  N/A |
| N/A   40C    P0            751W /   80W |      14MiB /  16384MiB |      6%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""
WINDOWS_560 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 560.94                 Driver Version: 560.94         CUDA Version: 12.6     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                  Driver-Model | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 3090      WDDM  |   00000000:01:00.0  On |                  N/A |
|  0%   45C    P8             20W /  350W |    1265MiB /  24576MiB |      3%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""


def test_a_table_of_2014_has_no_cuda_and_no_mig() -> None:
    assert read(DRIVER_331) == (
        Driver(release="331.62", source="nvidia-smi"),
        tuple(
            Gpu(
                "GeForce GTX 680",
                index=index,
                memory=4095 * MIB,
                bus=f"0000:0{index + 3}:00.0",
                compute_mode="Default",
            )
            for index in range(2)
        ),
    )


def test_the_old_header_names_the_driver_and_its_cuda() -> None:
    driver, gpus = read(DRIVER_450)
    assert driver == Driver(release="450.57", cuda="11.0", source="nvidia-smi")
    assert gpus == (
        Gpu(
            "TITAN Xp",
            index=0,
            memory=12196 * MIB,
            bus="00000000:17:00.0",
            compute_mode="Default",
        ),
    )


def test_the_header_since_610_names_the_kernel_driver_and_the_user_space_cuda() -> None:
    driver, gpus = read(DRIVER_610)
    assert driver == Driver(release="610.43.03", cuda="13.3", source="nvidia-smi")
    assert [gpu.name for gpu in gpus] == ["NVIDIA GeForce RTX 3080 ..."]


def test_a_table_of_windows_is_read_alike() -> None:
    driver, gpus = read(WINDOWS_560.replace("\n", "\r\n"))
    assert (driver.release, driver.cuda) == ("560.94", "12.6")
    assert [(gpu.name, gpu.memory) for gpu in gpus] == [("NVIDIA GeForce RTX 3090", 24576 * MIB)]


def test_rows_of_mig_devices_and_processes_are_no_gpus() -> None:
    _, gpus = read(DRIVER_580_MIG)
    assert [(gpu.index, gpu.mig, gpu.memory) for gpu in gpus] == [
        (0, True, 40960 * MIB),
        (7, False, 40960 * MIB),
    ]
    assert [gpu.compute_mode for gpu in gpus] == ["Default", "Exclusive_Process"]


@pytest.mark.parametrize(
    ("cuda", "expected"), [("N/A ", None), ("ERR!", None), ("12.2", "12.2"), ("12.2x", None)]
)
def test_a_cuda_version_that_is_none_is_none(cuda: str, expected: str | None) -> None:
    text = f"| NVIDIA-SMI 535.183.01   Driver Version: 535.183.01   CUDA Version: {cuda}     |"
    driver, _ = read(text)
    assert (driver.release, driver.cuda) == ("535.183.01", expected)


VERSION_560 = """\
NVIDIA-SMI version  : 560.35.03
NVML version        : 560.35
DRIVER version      : 560.35.03
CUDA Version        : 12.6
"""
VERSION_610 = """\
NVIDIA-SMI version  : 610.43.02
NVML version        : 610.43
KMD version         : 610.43.02
CUDA UMD Version    : 13.3
"""


@pytest.mark.parametrize(
    ("text", "release", "cuda"),
    [(VERSION_560, "560.35.03", "12.6"), (VERSION_610, "610.43.02", "13.3")],
)
def test_the_version_lines_are_read_in_both_spellings(text: str, release: str, cuda: str) -> None:
    driver, gpus = read(text)
    library = release.rpartition(".")[0]
    assert driver == Driver(release=release, cuda=cuda, source="nvidia-smi", library=library)
    assert gpus == ()


UUID = "GPU-9e4aeb94-01c0-5173-4811-4ca60f77b3a9"
ROW = f"0, NVIDIA A100-SXM4-40GB, {UUID}, 580.95.05, 8.0, 40960, 00000000:10:1C.0, Enabled, Default"
A100 = Gpu(
    "NVIDIA A100-SXM4-40GB",
    index=0,
    capability=(8, 0),
    memory=40960 * MIB,
    uuid=UUID,
    bus="00000000:10:1C.0",
    mig=True,
    compute_mode="Default",
)


def test_the_query_gives_what_the_table_cannot() -> None:
    driver, gpus = read(ROW + "\n")
    assert driver == Driver(release="580.95.05", source="nvidia-smi")
    assert gpus == (A100,)


def test_a_header_of_the_query_names_its_own_columns() -> None:
    text = (
        f"name, driver_version, memory.total [MiB], uuid\nTesla T4, 535.183.01, 15360 MiB, {UUID}\n"
    )
    driver, gpus = read(text)
    assert driver.release == "535.183.01"
    assert gpus == (Gpu("Tesla T4", memory=15360 * MIB, uuid=UUID),)


def test_columns_asked_for_otherwise_are_named_by_the_caller() -> None:
    driver, gpus = read(f"{UUID}, 535.183.01\n", ("uuid", "driver_version"))
    assert (driver.release, gpus) == ("535.183.01", (Gpu("", uuid=UUID),))


def test_what_a_query_does_not_tell_is_none() -> None:
    row = f"1, NVIDIA GB10, {UUID}, 580.95.05, [N/A], [N/A], [Not Supported], [N/A], [N/A]"
    _, gpus = read(row)
    assert gpus == (Gpu("NVIDIA GB10", index=1, uuid=UUID),)


def test_a_gpu_that_is_lost_is_an_error_beside_the_others() -> None:
    lost = ", ".join(["1", "[GPU is lost]", UUID, "580.95.05", *["[GPU is lost]"] * 5])
    driver, gpus = read(f"{ROW}\n{lost}\n")
    assert (driver.code, driver.release) == (15, "580.95.05")
    assert [gpu.name for gpu in gpus] == [A100.name, ""]


def test_a_field_that_an_older_driver_refuses_is_no_fault_of_the_driver() -> None:
    text = 'Field "compute_cap" is not a valid field to query.\n'
    assert nvidia_smi.refused_field(text) == "compute_cap"
    assert read(text) == (Driver(release=None, source="nvidia-smi"), ())
    assert nvidia_smi.refused_field(ROW) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", 18),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9),
        ("No devices were found", 6),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure", 12),
        ("Unable to determine the device handle for GPU 0000:65:00.0: GPU is lost.", 15),
        ("Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error", 999),
        ("Failed to initialize NVML: Unknown Error", 999),
        ("Failed to initialize NVML: Insufficient Permissions", 4),
        ("Failed to initialize NVML: GPU access blocked by the operating system", 17),
        ("Failed to initialize NVML: Driver Not Loaded", 9),
        ("Failed to initialize NVML: something of the year 2031", None),
    ],
)
def test_a_failure_is_kept_in_its_own_words_with_its_number(text: str, code: int | None) -> None:
    assert read(f"{text}\r\n") == (
        Driver(release=None, source="nvidia-smi", error=text, code=code),
        (),
    )


def test_a_mismatch_tells_the_release_of_the_library() -> None:
    driver, _ = read(
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n"
    )
    assert (driver.code, driver.library, driver.release) == (18, "550.90", None)


def test_a_handle_that_cannot_be_had_stands_before_the_table_of_the_rest() -> None:
    first = "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error"
    driver, gpus = read(f"{first}\n{DRIVER_450}")
    assert (driver.error, driver.code, driver.release) == (first, 999, "450.57")
    assert len(gpus) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "'nvidia-smi' 不是内部或外部命令也不是可运行的程序\n",
        bytes(range(256)).decode("latin-1") * 64,
        "0, 1, 2, 3, 4, 5, 6, 7, 8\n",
        "NVIDIA-SMI Driver Version CUDA Version",
        "Killed",
    ],
)
def test_what_is_no_answer_at_all_is_garbage(text: str) -> None:
    assert read(text) == (Driver(release=None, source="nvidia-smi", garbage=True), ())


@given(st.text(alphabet="|+-=: .,0129NVIDIASMIOffWMiB/%\n\\x00é[]", max_size=400))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    driver, gpus = read(text)
    assert driver.garbage is (driver.release is None and driver.error is None and not gpus)


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 3_000_000,
        " " * 3_000_000,
        "| 0 " * 500_000,
        "NVIDIA-SMI " * 200_000,
        "MiB / 1MiB | " * 200_000,
        ", " * 1_000_000,
    ],
)
def test_a_huge_text_is_read_in_time(text: str) -> None:
    start = time.process_time()
    assert read(text)[0].garbage
    assert time.process_time() - start < 5
