# ruff: noqa: E501 - as printed
"""What each layout says, as facts."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.reading.pasted import samples
from torchdoctor.facts import Unknown
from torchdoctor.reading import pasted
from torchdoctor.reading.pasted import Pasted


def read(*texts: str) -> Pasted:
    return pasted.read([(f"{i}.txt", text) for i, text in enumerate(texts)])


def facts(*texts: str) -> Any:
    """Return the facts with the names of fields as attributes; an absent one raises."""

    class Facts:
        def __getattr__(self, name: str) -> Any:
            return found[name]

    found = read(*texts).fields
    return Facts()


def versions(text: str) -> dict[str, str]:
    return {d.name: d.version for d in cast("Any", read(text).fields["distributions"])}


def test_vllm_pads_the_keys_and_adds_sections() -> None:
    said = facts(samples.VLLM)
    assert said.torch.version == "2.7.0+cu126"
    assert said.torch.tag == "cu126"
    assert said.torch.distribution.version == "2.7.0"
    assert said.platform.distribution == "rhel"
    assert (said.platform.libc_version, said.platform.machine) == ("2.28", "x86_64")
    assert said.interpreter.version == "3.10.16"
    assert [gpu.index for gpu in said.gpus] == [0, 1]
    assert said.driver.release == "550.144.03"
    assert [toolkit.release for toolkit in said.toolkits] == ["12.6"]
    assert said.runtime.available is True
    assert said.trial.outcome == "imported"
    assert said.variables["LD_LIBRARY_PATH"] == "/usr/local/cuda/lib64"
    assert versions(samples.VLLM)["vllm"] == "0.9.0"


def test_2_15_names_the_rocm_sdk_and_hip_apart() -> None:
    said = facts(samples.ROCM_2_15)
    assert (said.torch.hip, said.torch.cuda) == ("7.2.53211-e1c9b8e1", None)
    assert said.torch.tag == "rocm7.2"
    (gpu,) = said.gpus
    assert (gpu.name, gpu.vendor, gpu.gfx) == ("AMD Radeon RX 7900 XTX", "amd", "gfx1100")
    assert "driver" not in read(samples.ROCM_2_15).fields


def test_yes_and_no_are_the_truth_values_of_old() -> None:
    said = facts(samples.YES_NO)
    assert said.runtime.available is True
    assert (said.torch.version, said.torch.tag) == ("1.1.0", "cu90")
    assert said.torchvision.version == "0.2.0"
    assert said.platform.machine == ""


def test_no_cuda_on_a_mac_is_a_cpu_build_and_no_word_on_a_driver() -> None:
    found = read(samples.MAC_UV)
    said = facts(samples.MAC_UV)
    assert said.torch.tag == "cpu"
    assert (said.platform.system, said.platform.version) == ("darwin", "26.4.1")
    assert said.interpreter.installer == "uv"
    assert not {"driver", "gpus", "torchaudio"} & set(found.fields)


def test_a_part_of_a_list_leaves_absence_open() -> None:
    found = read(samples.YES_NO)
    assert not found.complete
    assert "torchaudio" not in found.fields


def test_a_whole_pip_list_says_what_is_not_there() -> None:
    found = read(samples.PIP_LIST)
    assert found.complete == {"distributions"}
    assert found.fields["torchvision"] is None
    assert facts(samples.PIP_LIST).torch.tag == "cu128"
    assert read(samples.PIP_LIST_WITHOUT_TORCH).fields["torch"] is None


@pytest.mark.parametrize("row", ["networkx", "MarkupSafe", "typing_extensions", "pip"])
def test_a_pip_list_with_a_row_taken_out_is_not_whole_where_that_can_be_seen(row: str) -> None:
    cut = "\n".join(line for line in samples.PIP_LIST.split("\n") if not line.startswith(row))
    if row in ("networkx", "pip"):  # nothing else tells of them
        assert read(cut).complete == {"distributions"}
    else:
        assert not read(cut).complete


def test_a_list_that_was_filtered_is_not_whole() -> None:
    found = read(samples.PIP_LIST.replace("$ pip list", "$ pip list | grep -v foo"))
    assert not found.complete
    assert "torchvision" not in found.fields


def test_pip_freeze_json_and_show_are_read() -> None:
    freeze = "$ pip freeze\nnumpy==1.26.4\ntorch @ file:///tmp/torch-2.3.0%2Bcpu-cp311-cp311-linux_x86_64.whl#sha256=00"
    assert versions(freeze) == {"numpy": "1.26.4", "torch": "2.3.0+cpu"}
    json = '[{"name": "torch", "version": "2.4.0"}, {"name": "typing_extensions", "version": "4.12.2"}]'
    assert versions(json) == {"torch": "2.4.0", "typing-extensions": "4.12.2"}
    show = "Name: torch\nVersion: 2.4.0+cu121\nSummary: Tensors\nLocation: /home/user/ml/lib/python3.11/site-packages\nRequires: filelock\n"
    said = facts(show)
    assert said.torch.distribution.folder == "/home/user/ml/lib/python3.11/site-packages"
    assert (said.interpreter.version, said.interpreter.prefix) == ("3.11", "/home/user/ml")


def test_the_lines_of_a_requirements_file_are_wishes() -> None:
    assert "distributions" not in read("$ cat requirements.txt\ntorch==2.1.0\nnumpy==1.26.4").fields


def test_what_was_typed_is_a_wish_too() -> None:
    for typed in (
        "$ pip install torch==2.1.0",
        "pip install torch==2.1.0",
        "RUN pip install torch==2.1.0",
    ):
        assert "torch" not in read(typed).fields, typed


def test_conda_in_its_forms() -> None:
    said = facts(samples.CONDA_JSON)
    assert said.torch.tag == "cu126"
    assert said.conda.get("pytorch").channel == "conda-forge"
    assert said.torchvision.distribution.installer == "pip"
    assert facts(samples.CONDA_EXPLICIT).torch.tag == "cu124"
    assert facts(samples.CONDA_EXPLICIT).interpreter.version == "3.12.8"
    info = facts(samples.CONDA_INFO)
    assert (info.driver.cuda, info.driver.release) == ("12.4", None)
    assert info.platform.libc_version == "2.35"
    assert "interpreter" not in read(samples.CONDA_INFO).fields, "that is conda's own Python"


def test_pixi_and_poetry() -> None:
    said = facts(samples.PIXI)
    assert said.torch.version == "2.5.1"
    assert versions(samples.PIXI) == {"xformers": "0.0.29"}
    assert versions(samples.POETRY) == {"torch": "2.5.1"}, "(!) is not installed"


def test_uv_pip_list_is_that_of_pip() -> None:
    assert versions(samples.UV_PIP_LIST) == {"numpy": "2.2.1", "torch": "2.5.1+cu124"}


@pytest.mark.parametrize("listing", [samples.CONDA_LIST, samples.MAMBA_LIST])
def test_a_plain_conda_list_names_its_environment(listing: str) -> None:
    said = facts(listing)
    assert said.interpreter.prefix == said.conda.prefix
    assert said.conda.prefix.endswith("/envs/ml")
    assert said.interpreter.version == said.conda.get("python").version
    assert said.torch.version == said.conda.get("pytorch").version
    assert said.torch.tag in ("cu121", "cpu")


def test_what_pip_put_into_a_conda_environment_is_not_condas() -> None:
    said = facts(samples.CONDA_LIST)
    assert said.conda.get("torchvision") is None
    assert said.torchvision.distribution.installer == "pip"


def test_nvcc_is_a_toolkit() -> None:
    (toolkit,) = facts(samples.NVCC).toolkits
    assert (toolkit.release, toolkit.source) == ("12.4", "nvcc")


def test_the_links_between_gpus_are_kept_beside_the_facts() -> None:
    assert read(samples.TOPOLOGY).extra["link"] == (
        "GPU0 GPU1 NV12",
        "GPU0 GPU2 SYS",
        "GPU1 GPU2 PHB",
    )
    cut = samples.TOPOLOGY.replace("GPU1    NV12     X", "GPU9    NV12     X")
    assert "link" not in read(cut).extra


def test_the_header_of_nvidia_smi_since_590() -> None:
    said = facts(samples.NVIDIA_SMI_590)
    assert (said.driver.release, said.driver.cuda) == ("590.44.01", "13.1")
    assert [gpu.name for gpu in said.gpus] == ["NVIDIA H200"]


def test_nvidia_smi_in_its_forms() -> None:
    said = facts(samples.NVIDIA_SMI)
    assert (said.driver.release, said.driver.cuda) == ("550.144.03", "12.4")
    assert [gpu.memory for gpu in said.gpus] == [24576 << 20] * 2
    query = facts(samples.SMI_QUERY)
    assert query.gpus[0].capability == (8, 9)
    assert query.driver.release == "560.35.03"
    broken = facts(
        "$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.107"
    )
    assert (broken.driver.code, broken.driver.library, broken.driver.release) == (
        18,
        "550.107",
        None,
    )


def test_the_tools_of_amd_and_lspci() -> None:
    assert facts(samples.ROCMINFO).gpus[0].gfx == "gfx1100"
    assert facts(samples.ROCM_SMI).gpus[0].name == "AMD Radeon PRO W7800 48GB"
    assert facts(samples.AMD_SMI).gpus[0].bus == "0000:63:00.0"
    names = [(gpu.vendor, gpu.name) for gpu in facts(samples.LSPCI).gpus]
    assert names == [
        ("nvidia", "GeForce RTX 3070 Mobile / Max-Q"),
        ("amd", "Radeon Vega Series"),
    ]


def test_questions_at_a_prompt_have_answers() -> None:
    said = facts(samples.PROMPT)
    assert (said.torch.version, said.torch.cuda, said.torch.tag) == ("2.3.0", "12.1", "cu121")
    assert said.runtime.available is False
    assert said.interpreter.version == "3.12.1"
    line = facts(samples.ONE_LINE)
    assert (line.torch.version, line.torchvision.version) == ("2.5.1+cu121", "0.20.1+cu121")
    assert line.runtime.available is True
    assert line.runtime.devices[0].capability == (8, 6)
    assert line.runtime.arch_list[-1] == "sm_90"


def test_an_answer_of_another_kind_is_no_answer() -> None:
    found = read(">>> torch.__version__\nFalse\n>>> torch.cuda.is_available()\n'2.3.0'")
    assert "torch" not in found.fields
    assert "runtime" not in found.fields
    assert len(found.unread) == 2


def test_pip_debug_names_the_interpreter() -> None:
    said = facts(samples.PIP_DEBUG)
    assert said.interpreter.executable == "C:\\Users\\user\\venv\\Scripts\\python.exe"
    assert (said.interpreter.kind, said.interpreter.redacted) == ("venv", False)
    assert said.platform.system == "win32"


def test_visual_c_runtimes_are_kept_beside_the_facts() -> None:
    assert read(samples.WINGET).extra["vc_runtime"] == ("x64 14.38.33135.0",)


def test_docker_run_tells_whether_gpus_were_given() -> None:
    said = facts(samples.DOCKER)
    assert (said.container.kind, said.container.gpu_hook) == ("docker", False)
    assert said.limits.shm == 8 << 30
    assert facts(samples.DOCKER.replace("run", "run --gpus all")).container.gpu_hook is True
    image = read("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch")
    assert image.extra["image"] == ("nvidia/cuda:12.4.1-devel-ubuntu22.04",)
    frame = "   from /home/user/venv/lib/python3.8/site-packages/torch/lib/libtorch_cpu.so"
    assert "image" not in read(f"0x00007fff in x ()\n{frame}").extra


def test_a_module_that_is_not_there_is_a_failed_import() -> None:
    said = facts(samples.NO_MODULE)
    assert said.trial.outcome == "raised"
    assert said.torch is None
    assert said.modules["torch"] is None


def test_a_build_in_isolation_does_not_say_that_torch_is_not_installed() -> None:
    text = f"  Getting requirements to build wheel ... error\n{samples.NO_MODULE}\ntorch  2.5.1\n"
    said = facts(text)
    assert said.torch.version == "2.5.1"
    assert "trial" not in read(text).fields


def test_a_variable_that_is_set_for_one_run_of_two_is_not_set() -> None:
    text = "$ NCCL_P2P_DISABLE=1 torchrun train.py\n$ torchrun train.py"
    assert "variables" not in read(text).fields
    assert facts("$ NCCL_P2P_DISABLE=1 torchrun train.py").variables == {"NCCL_P2P_DISABLE": "1"}


def test_a_secret_is_not_kept() -> None:
    text = "export TORCH_API_KEY=abc\nexport CUDA_HOME=/usr/local/cuda\n"
    assert facts(text).variables == {"CUDA_HOME": "/usr/local/cuda"}


def test_flags_of_the_processor_that_were_cut_short_are_not_told() -> None:
    flags = " ".join(["fpu", "vme", "avx", "avx2", *(f"flag{i}" for i in range(40))])
    assert "avx2" in facts(f"Flags:   {flags}\nVirtualization: AMD-V").cpu.flags
    assert "cpu" not in read(f"Flags:   {flags[:40]}\nVirtualization: AMD-V").fields
    assert "cpu" not in read(f"Flags:   {flags}\nsomething else").fields


def test_the_c_library_of_an_old_python_is_only_a_lower_bound() -> None:
    old = "Libc version: glibc-2.9\nPython version: 3.7 (64-bit runtime)\nOS: Ubuntu 18.04 LTS (x86_64)"
    assert facts(old).platform.libc_version is None
    new = old.replace("3.7", "3.8.16").replace("2.9", "2.31")
    assert facts(new).platform.libc_version == "2.31"
    platform = (
        "Python platform: Linux-5.4.0-150-generic-x86_64-with-glibc2.17\nPython version: 3.8.16 (x)"
    )
    assert facts(platform).platform.libc_version is None


def test_wsl_is_in_the_name_of_the_kernel() -> None:
    assert facts("$ uname -r\n4.4.0-19041-Microsoft").platform.wsl == 1
    assert facts("$ uname -r\n5.15.153.1-microsoft-standard-WSL2").platform.wsl == 2


def test_the_environments_of_accelerate_and_ultralytics() -> None:
    said = facts(
        "- Platform: Linux-5.15.0-113-generic-x86_64-with-glibc2.35\n- PyTorch version (GPU?): 2.4.0+cu121 (True)\n- GPU type: NVIDIA A100-SXM4-80GB\n"
    )
    assert (said.torch.version, said.runtime.available) == ("2.4.0+cu121", True)
    assert said.platform.machine == "x86_64"
    assert said.gpus[0].name == "NVIDIA A100-SXM4-80GB"
    yolo = facts("Ultralytics YOLOv8.0.20 Python-3.9.16 torch-1.13.1+cpu CPU")
    assert (yolo.torch.tag, yolo.interpreter.version) == ("cpu", "3.9.16")


def test_x86_64_is_no_answer_to_which_system_it_is() -> None:
    said = facts(samples.MAC)
    assert (said.platform.system, said.platform.version) == ("darwin", "13.6.1")
    assert said.platform.machine == "x86_64"
    assert facts("$ uname -m\nx86_64\n").platform.system == ""
    assert facts("$ uname -m\naarch64\n").platform.system == "linux"
    assert facts("$ uname\nDarwin\n$ uname -m\nx86_64\n").platform.system == "darwin"
    assert facts("$ uname -s\nLinux\n$ uname -m\nx86_64\n").platform.system == "linux"


def test_the_kernel_of_a_mac_is_none_of_linux() -> None:
    found = read("$ uname -r\n23.6.0\n").fields
    assert "platform" not in found
    assert facts("$ uname -r\n6.8.0\n").platform.system == "linux"
    darwin = "Darwin h 23.6.0 Darwin Kernel Version 23.6.0: root:xnu-10063/RELEASE_X86_64 x86_64"
    assert facts(f"$ uname -a\n{darwin}\n").platform.system == "darwin"


def test_10_16_is_what_an_old_python_is_told_of_every_mac() -> None:
    text = "OS: macOS 15.3 (x86_64)\nPython platform: macOS-10.16-x86_64-i386-64bit\n"
    assert not read(text).conflicts
    assert facts(text).platform.version == "15.3"


def test_a_torch_that_collect_env_calls_n_a_could_not_be_imported() -> None:
    said = facts(samples.NO_TORCH)
    assert (said.trial.module, said.trial.outcome) == ("torch", "raised")
    assert said.torch is None, "and pip lists none"


def test_a_torch_that_is_listed_and_called_n_a_is_installed() -> None:
    for row in ("torch==2.4.0", "triton==3.0.0", "nvidia-cudnn-cu12==9.1.0.70"):
        text = samples.NO_TORCH.replace("numpy==1.26.4", row)
        found = read(text).fields
        assert cast("Any", found["trial"]).outcome == "raised"
        assert found.get("torch", "unknown") is not None, row
    unlisted = samples.NO_TORCH.replace("[pip3] numpy==1.26.4", "[pip3] Could not collect")
    assert "torch" not in read(unlisted).fields


def test_a_traceback_says_more_than_n_a() -> None:
    error = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File "/a/site-packages/torch/__init__.py", line 7, in <module>\n    raise err\nOSError: libcurand.so.10: cannot open shared object file\n\n'
    assert facts(error + samples.NO_TORCH).trial.error.type == "OSError"


@pytest.mark.parametrize("said", ["CUDA version: 12.5", "- CUDA: 12.5.82", "cuda = 12.5"])
def test_a_cuda_that_is_not_torchs_is_kept_apart_and_said(said: str) -> None:
    for torch in ("2.2.1+cpu", "2.2.1+cu121"):
        found = read(f"RuntimeError: no\n{said}\ntorch           {torch}\n")
        assert "driver" not in found.fields
        assert "toolkits" not in found.fields
        (remark,) = found.unread
        assert said in remark


def test_a_cuda_that_may_be_torchs_is_not_said() -> None:
    error = "RuntimeError: no\n"
    for text in (
        "CUDA version: 12.1\ntorch           2.2.1+cu121\n",
        "CUDA version: 12.5\n",
        "CUDA version: 12.4\ntorch      2.2.1+cu121\n" + samples.NVIDIA_SMI,
        "CUDA version: 12.4\ntorch      2.2.1+cu121\n" + samples.NVCC,
    ):
        assert read(error + text).unread == ()


def test_gpus_written_by_hand_are_counted() -> None:
    assert [gpu.name for gpu in facts("GPU: 2x RTX 3090").gpus] == ["RTX 3090"] * 2
    assert "gpus" not in read("GPU: RTX 3090 or RTX 4090").fields


def test_packages_of_the_driver_tell_its_library() -> None:
    dpkg = "ii  libnvidia-compute-535:amd64  535.171.04-0ubuntu0.22.04.1  amd64  x\nrc  nvidia-driver-525  525.147.05-0ubuntu1  amd64  x"
    assert facts(dpkg).driver.library == "535.171.04"
    assert facts("nvidia-driver-cuda-550.54.15-1.el9.x86_64").driver.library == "550.54.15"
    assert facts("nvidia-driver-3:550.54.15-1.el9.x86_64").driver.library == "550.54.15"


# ---- contradictions --------------------------------------------------------------------------------


def test_two_listings_that_disagree_are_kept_apart() -> None:
    found = read("Nvidia driver version: 535.104.05", "Nvidia driver version: 550.54.14")
    unknown = found.fields["driver"]
    assert isinstance(unknown, Unknown)
    assert "535.104.05 (0.txt: collect_env)" in unknown.reason
    (conflict,) = found.conflicts
    assert conflict.fact == "driver.release"
    assert [value for value, _ in conflict.values] == ["535.104.05", "550.54.14"]


def test_what_torch_printed_counts_more_than_what_pip_lists_and_both_are_told() -> None:
    found = read(
        "Collecting environment information...\nPyTorch version: 2.13.0+cpu\nIs debug build: False\n[pip3] torch==2.9.1+cu128"
    )
    torch = cast("Any", found.fields["torch"])
    assert (torch.version, torch.distribution) == ("2.13.0+cpu", None)
    assert versions("[pip3] torch==2.9.1+cu128") == {"torch": "2.9.1+cu128"}


def test_a_version_said_more_exactly_is_no_contradiction() -> None:
    found = read(
        "Python 3.10\ntorch 2.4.0\n",
        "Python 3.10.12 (main, Nov  6 2024, 20:22:13) [GCC 11.4.0] on linux\n[pip3] torch==2.4.0+cu121",
    )
    assert not found.conflicts
    assert cast("Any", found.fields["interpreter"]).version == "3.10.12"
    assert cast("Any", found.fields["torch"]).version == "2.4.0+cu121"


def test_gpus_of_two_machines_are_not_added_up() -> None:
    found = read(samples.NVIDIA_SMI, "GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB\n")
    assert isinstance(found.fields["gpus"], Unknown)


def test_a_name_that_the_table_cut_short_is_the_same_gpu() -> None:
    smi = samples.NVIDIA_SMI.replace("NVIDIA GeForce RTX 3090 ", "NVIDIA GeForce ...     ")
    found = read(smi, "GPU 0: NVIDIA GeForce RTX 3090\nGPU 1: NVIDIA GeForce RTX 3090")
    assert not found.conflicts
    assert [gpu.name for gpu in cast("Any", found.fields["gpus"])] == [
        "NVIDIA GeForce RTX 3090"
    ] * 2


def test_nothing_is_read_out_of_prose() -> None:
    prose = (
        "I tried torch 2.1 and 2.2 on my RTX 3090 with CUDA 12.1, and driver 535 did not help.\n"
        "Python 3.9 is supported according to the page. Is CUDA 11.8 still available?\n"
        "See https://pytorch.org/get-started/previous-versions/ for torch==1.13.1 please.\n"
    )
    assert read(prose).fields == {}


def test_a_variable_that_is_added_to_is_known_by_what_it_gets() -> None:
    said = facts("export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/opt/libtorch/lib\n")
    assert said.variables["LD_LIBRARY_PATH"] == "/opt/libtorch/lib"
    said = facts("export LD_LIBRARY_PATH=/opt/lib:${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n")
    assert said.variables["LD_LIBRARY_PATH"] == "/opt/lib"
    found = read("export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH\n")
    assert "variables.LD_LIBRARY_PATH" not in found.fields


def test_a_part_of_rocminfo_names_its_gpus_and_no_processor() -> None:
    said = facts(
        "$ rocminfo | grep -E 'Marketing|amdgcn'\n"
        "  Marketing Name:          AMD Ryzen 7 7840U\n"
        "  Marketing Name:          AMD Radeon Graphics\n"
        "      Name:                    amdgcn-amd-amdhsa--gfx1103\n"
    )
    assert [(gpu.name, gpu.gfx) for gpu in said.gpus] == [("AMD Radeon Graphics", "gfx1103")]


def test_uv_says_which_python_it_uses() -> None:
    assert facts("$ uv sync\nUsing CPython 3.13.1\n").interpreter.version == "3.13.1"
