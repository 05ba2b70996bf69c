from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.probes.recorded import BARE, MACHINES, OVERLAY, look, write
from torchdoctor.child import Run
from torchdoctor.facts import Container, Cpu, DeviceNode, Kernel, Limits, Platform, Toolkit, Unknown
from torchdoctor.reading import host
from torchdoctor.reading.toolkits import toolkits

FIELDS = {
    *("platform", "cpu", "container", "limits", "workers", "network", "device_nodes", "kernel"),
    "toolkits",
}
PROBE = ("python", "-", "{}")


def answered(data: Mapping[str, object]) -> Run:
    return Run(PROBE, "answered", data=data)


def with_piece(run: Run, piece: str, **known: object) -> Run:
    """Return *run* with some members of one piece replaced."""
    old = run.data[piece] or {}
    assert isinstance(old, dict)
    return answered({**run.data, piece: {**old, **known}})


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    """Probe the recorded machine whose name is the parameter."""
    name: str = request.param
    run = look(write(tmp_path / "root", MACHINES[name]), folder=tmp_path)
    uname = {"sysname": "Linux", "machine": "aarch64" if name == "jetson" else "x86_64"}
    old = run.data["system"]
    assert isinstance(old, dict)
    return with_piece(run, "system", uname={**old["uname"], **uname})


def on(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("machine", [name], indirect=True)


def test_this_very_machine_is_read_without_anything_unknown(tmp_path: Path) -> None:
    facts = host.read(look(folder=tmp_path))
    assert set(facts) == FIELDS
    assert {name: fact for name, fact in facts.items() if isinstance(fact, Unknown)} == {}
    platform = facts["platform"]
    assert isinstance(platform, Platform)
    assert platform.machine == os.uname().machine
    assert platform.emulated is False


@on("bare")
def test_a_server_with_one_gpu_is_read_whole(machine: Run) -> None:
    facts = host.read(machine)
    platform = facts["platform"]
    assert isinstance(platform, Platform)
    assert platform == Platform(
        system="linux",
        machine="x86_64",
        name="Ubuntu 22.04.5 LTS",
        distribution="ubuntu",
        like=("debian",),
        version="22.04",
        kernel="5.15.0-124-generic",
        libc=platform.libc,
        libc_version=platform.libc_version,
        emulated=False,
    )
    assert facts["cpu"] == Cpu(
        "Intel(R) Xeon(R) Platinum 8480+",
        frozenset(("fpu", "sse", "sse2", "lm", "avx", "avx2", "avx512f")),
        os.cpu_count(),
    )
    assert facts["container"] is None
    assert facts["kernel"] == Kernel(
        frozenset(("nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset")), reboot_required=True
    )
    assert facts["toolkits"] == (
        Toolkit("12.4", "/usr/local/cuda", "version.json"),
        Toolkit("10.2", "/usr/local/cuda-10.2", "version.txt"),
    )
    nodes = facts["device_nodes"]
    assert isinstance(nodes, tuple)
    assert [node.path for node in nodes] == [
        *("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1"),
    ]
    assert all(node.allowed for node in nodes)


@on("rhel")
def test_rhel_is_named_and_has_no_word_on_a_reboot(machine: Run) -> None:
    facts = host.read(with_piece(machine, "kernel", reboot_required=False))
    platform, kernel = facts["platform"], facts["kernel"]
    assert isinstance(platform, Platform)
    assert isinstance(kernel, Kernel)
    assert (platform.distribution, platform.like, platform.version) == ("rhel", ("fedora",), "9.4")
    assert kernel.reboot_required is None


@on("bare")
def test_ubuntu_without_the_mark_needs_no_reboot(machine: Run) -> None:
    kernel = host.read(with_piece(machine, "kernel", reboot_required=False))["kernel"]
    assert isinstance(kernel, Kernel)
    assert kernel.reboot_required is False


@on("docker-gpu")
def test_a_docker_container_with_gpus_shows_the_hook(machine: Run) -> None:
    assert host.read(machine)["container"] == Container("docker", gpu_hook=True, ipc="own")


@on("docker-no-gpu")
def test_a_docker_container_without_gpus_shows_none(machine: Run) -> None:
    facts = host.read(machine)
    assert facts["container"] == Container("docker", gpu_hook=False, ipc="own")
    assert facts["device_nodes"] == ()
    kernel = facts["kernel"]
    assert isinstance(kernel, Kernel)
    assert "nvidia" in kernel.modules
    assert kernel.reboot_required is None


@on("docker-no-gpu")
def test_shared_memory_that_was_given_is_told_from_the_containers_own(machine: Run) -> None:
    ours = [
        "1022 1018 0:135 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=65536k",
        "1013 812 0:131 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A",
    ]
    given = host.read(with_piece(machine, "container", mounts=ours))["container"]
    assert given == Container("docker", gpu_hook=False, ipc="given")
    none = host.read(with_piece(machine, "container", mounts=ours[1:]))["container"]
    assert none == Container("docker", gpu_hook=False)


@on("docker-no-gpu")
def test_a_variable_that_images_set_themselves_is_no_hook(machine: Run) -> None:
    by_image = with_piece(machine, "container", variables={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert host.read(by_image)["container"] == Container("docker", gpu_hook=False, ipc="own")
    by_plugin = with_piece(machine, "container", variables={"NVIDIA_VISIBLE_DEVICES": "GPU-1a2b"})
    assert host.read(by_plugin)["container"] == Container("docker", gpu_hook=True, ipc="own")


@on("docker-no-gpu")
def test_a_virtual_machine_made_from_an_image_is_no_container(machine: Run) -> None:
    disk = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard"
    assert host.read(with_piece(machine, "container", mounts=[disk]))["container"] is None


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        ({"variables": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}}, "kubernetes"),
        ({"files": ["/run/secrets/kubernetes.io", "/.dockerenv"]}, "kubernetes"),
        ({"cgroup": {"1": "0::/kubepods/burstable/pod1\n", "self": None}}, "kubernetes"),
        ({"variables": {"APPTAINER_CONTAINER": "/x.sif"}, "files": []}, "singularity"),
        ({"files": ["/.singularity.d"]}, "singularity"),
        ({"files": ["/run/.containerenv"]}, "podman"),
        ({"variables": {"container": "podman"}, "files": []}, "podman"),
        ({"variables": {"container": "lxc"}, "files": []}, "lxc"),
        ({"variables": {"container": "oci"}, "files": []}, "container"),
        ({"systemd": "systemd-nspawn\n", "files": []}, "container"),
        ({"cgroup": {"1": "4:memory:/docker/4f0c\n", "self": None}, "files": []}, "docker"),
    ],
)
@on("docker-no-gpu")
def test_each_kind_of_container_is_told(machine: Run, known: dict[str, object], kind: str) -> None:
    container = host.read(with_piece(machine, "container", **known))["container"]
    assert isinstance(container, Container)
    assert container.kind == kind


@on("wsl2")
def test_wsl_2_is_told_and_is_no_container(machine: Run) -> None:
    facts = host.read(machine)
    platform, nodes = facts["platform"], facts["device_nodes"]
    assert isinstance(platform, Platform)
    assert isinstance(nodes, tuple)
    assert platform.wsl == 2
    assert facts["container"] is None
    assert [node.path for node in nodes] == ["/dev/dxg"]


@on("wsl1")
def test_wsl_1_is_told(machine: Run) -> None:
    platform = host.read(machine)["platform"]
    assert isinstance(platform, Platform)
    assert platform.wsl == 1


@on("bare")
def test_another_kernel_is_no_wsl(machine: Run) -> None:
    platform = host.read(machine)["platform"]
    assert isinstance(platform, Platform)
    assert platform.wsl is None


@on("jetson")
def test_a_jetson_is_told(machine: Run) -> None:
    facts = host.read(machine)
    platform, cpu = facts["platform"], facts["cpu"]
    assert isinstance(platform, Platform)
    assert isinstance(cpu, Cpu)
    assert (platform.jetson, platform.machine, platform.emulated) == (True, "aarch64", False)
    assert "asimd" in cpu.flags


@on("rocm")
def test_a_rocm_node_has_its_device_files_and_their_owners(machine: Run) -> None:
    nodes = host.read(machine)["device_nodes"]
    assert isinstance(nodes, tuple)
    assert [node.path for node in nodes] == ["/dev/kfd", "/dev/dri/renderD128"]
    assert all(":" in node.owner and len(node.mode) == 4 for node in nodes)


def test_a_device_file_that_may_be_read_but_not_written_is_not_allowed() -> None:
    node = {
        "path": "/dev/kfd",
        "read": True,
        "write": False,
        "mode": "0660",
        "owner": "root",
        "group": "render",
    }
    assert host.device_nodes(answered({"device_nodes": [node]})) == (
        DeviceNode("/dev/kfd", allowed=False, mode="0660", owner="root:render"),
    )


@pytest.mark.parametrize(
    ("machine_type", "kernel_machine", "cpuinfo", "emulated"),
    [
        ("x86_64", "x86_64\n", "", False),
        ("aarch64", "x86_64\n", "", True),
        ("x86_64", "aarch64\n", "", True),
        ("i686", "x86_64\n", "", False),
        ("armv7l", "aarch64\n", "", False),
        ("aarch64", None, "flags\t: fpu lm sse2", True),
        ("x86_64", None, "Features\t: fp asimd", True),
        ("x86_64", None, "model name\t: VirtualApple @ 2.50GHz\nflags\t: lm", True),
        ("x86_64", None, "", None),
        ("sparc64", "sparc64", "", None),
    ],
)
@on("bare")
def test_emulation_is_a_machine_that_the_kernel_or_the_processor_contradicts(
    machine: Run,
    machine_type: str,
    kernel_machine: str | None,
    cpuinfo: str,
    emulated: bool | None,  # noqa: FBT001 - one column of a table
) -> None:
    uname = {"sysname": "Linux", "release": "6.1", "machine": machine_type}
    run = with_piece(machine, "system", uname=uname, kernel_machine=kernel_machine)
    platform = host.read(with_piece(run, "cpu", cpuinfo=cpuinfo))["platform"]
    assert isinstance(platform, Platform)
    assert platform.emulated is emulated


WINDOWS: dict[str, object] = {
    "system": {
        "platform": "win32",
        "python": "3.11.7 (tags/v3.11.7) [MSC v.1937 64 bit (AMD64)]",
        "windows": {
            "major": 10,
            "minor": 0,
            "build": 26100,
            "product_type": 1,
            "registry": {"ProductName": "Windows 10 Pro", "DisplayVersion": "24H2"},
        },
        "architecture": {"PROCESSOR_ARCHITECTURE": "AMD64", "PROCESSOR_ARCHITEW6432": None},
    },
    **dict.fromkeys(("distribution", "libc", "shm", "limits", "network", "kfd", "pci")),
    "wsl": {},
    "tegra": {},
    "cgroup": [],
    "cpu": {
        "count": 8,
        "features": {"sse2": True, "avx2": True, "avx512f": False},
        "wow64": {"process": 0, "native": 0x8664},
        "registry": {"ProcessorNameString": "AMD Ryzen 7 5800X 8-Core Processor"},
    },
    "container": {"files": [], "variables": {}, "mounts": None},
    "kernel": {"modules": None, "built_in": [], "reboot_required": False},
    "device_nodes": [],
    "toolkits": [
        {
            "path": r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.6",
            "real": r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.6",
            "nvcc": r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.6\bin\nvcc.exe",
        }
    ],
}


def test_windows_11_is_named_though_its_registry_says_10() -> None:
    facts = host.read(answered(WINDOWS))
    assert facts["platform"] == Platform(
        system="win32",
        machine="AMD64",
        name="Windows 11 Pro 24H2",
        version="10.0.26100",
        kernel="10.0.26100",
        emulated=False,
    )
    name = "AMD Ryzen 7 5800X 8-Core Processor"
    assert facts["cpu"] == Cpu(name, frozenset(("sse2", "avx2")), 8)
    assert facts["container"] is None
    assert facts["limits"] == Limits()
    assert facts["kernel"] == Kernel()
    toolkits = facts["toolkits"]
    assert isinstance(toolkits, tuple)
    assert (toolkits[0].release, toolkits[0].source) == ("12.6", "its folder's name")


def test_an_intel_python_on_windows_for_arm_is_emulated() -> None:
    run = with_piece(answered(WINDOWS), "cpu", wow64={"process": 0, "native": 0xAA64})
    platform = host.read(run)["platform"]
    assert isinstance(platform, Platform)
    assert platform.emulated is True
    native = with_piece(run, "system", python="3.13.0 [MSC v.1941 64 bit (ARM64)]")
    platform = host.read(native)["platform"]
    assert isinstance(platform, Platform)
    assert platform.emulated is False


def test_a_translated_python_on_apple_silicon_is_emulated() -> None:
    run = answered(
        {
            **WINDOWS,
            "system": {
                "platform": "darwin",
                "uname": {"sysname": "Darwin", "release": "24.1.0", "machine": "x86_64"},
                "sysctl": {"kern.osproductversion": "15.1", "sysctl.proc_translated": 1},
            },
            "cpu": {
                "count": 8,
                "sysctl": {
                    "machdep.cpu.brand_string": "Apple M2",
                    "machdep.cpu.features": "FPU SSE4.2 AVX1.0",
                    "machdep.cpu.leaf7_features": None,
                },
            },
        }
    )
    facts = host.read(run)
    assert facts["platform"] == Platform(
        system="darwin",
        machine="x86_64",
        name="macOS 15.1",
        version="15.1",
        kernel="24.1.0",
        emulated=True,
    )
    assert facts["cpu"] == Cpu("Apple M2", frozenset(("fpu", "sse4.2", "avx")), 8)


def limits_of(groups: list[dict[str, str]], **pieces: object) -> Limits:
    data = {"shm": {"size": 67108864, "free": 1024}, "cpu": {"count": 8, "affinity": 8}}
    limits = {"NOFILE": [1024, 4096], "MEMLOCK": [-1, -1]}
    run = answered({**data, "cgroup": groups, "limits": limits, **pieces})
    fact = host.read(run)["limits"]
    assert isinstance(fact, Limits)
    return fact


def test_the_smallest_limit_on_the_way_up_counts() -> None:
    assert limits_of(
        [
            {"folder": "/a/b", "memory.max": "max\n", "cpu.max": "400000 100000\n"},
            {"folder": "/a", "memory.max": "4294967296\n", "cpu.max": "150000 100000\n"},
            {"folder": "/", "memory.max": "8589934592\n", "cpu.max": "max 100000\n"},
        ]
    ) == Limits(
        shm=67108864,
        shm_free=1024,
        memory=4294967296,
        cpus=1.5,
        open_files=1024,
        locked_memory=None,
    )


def test_version_1_spells_no_limit_in_its_own_way() -> None:
    found = limits_of(
        [
            {"folder": "/m", "memory.limit_in_bytes": "9223372036854771712\n"},
            {"folder": "/c", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"},
        ]
    )
    assert (found.memory, found.cpus) == (None, None)


def test_a_quota_of_version_1_is_a_share_of_its_period() -> None:
    group = {"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"}
    assert limits_of([group]).cpus == 0.5


def test_fewer_processors_than_there_are_is_a_limit_too() -> None:
    assert limits_of([], cpu={"count": 8, "affinity": 2}).cpus == 2


@pytest.mark.parametrize(
    ("piece", "release", "source"),
    [
        ({"version_json": '{"cuda": {"version": "11.8.20220929"}}'}, "11.8", "version.json"),
        ({"version_json": '{"cuda": 3}', "nvcc": "/x/bin/nvcc"}, None, "nvcc"),
        ({"version_json": "{rubbish", "header": "#define CUDA_VERSION 12040"}, "12.4", ".h"),
        ({"header": "#define CUDA_VERSION 13000"}, "13.0", "include/cuda.h"),
        ({"real": "/usr/local/cuda-11.1"}, "11.1", "its folder's name"),
        ({"nvcc": "/usr/bin/nvcc"}, None, "nvcc"),
    ],
)
def test_a_toolkits_release_is_taken_from_the_file_that_tells_it(
    piece: dict[str, str], release: str | None, source: str
) -> None:
    (toolkit,) = toolkits(answered({"toolkits": [{"path": "/x", **piece}]}))
    assert toolkit.release == release
    assert toolkit.source.endswith(source)


def test_a_folder_without_a_compiler_and_without_a_release_is_no_toolkit() -> None:
    assert toolkits(answered({"toolkits": [{"path": "/opt/cuda", "nvcc": None}]})) == ()


def test_a_piece_that_failed_is_unknown_with_its_reason_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    root = write(tmp_path / "root", BARE)
    (root / "proc/modules").unlink()
    (root / "proc/modules").mkdir()
    facts = host.read(look(root, folder=tmp_path))
    kernel = facts.pop("kernel")
    assert isinstance(kernel, Unknown)
    assert "IsADirectoryError" in kernel.reason
    assert not any(isinstance(fact, Unknown) for fact in facts.values())


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (Run(PROBE, "not-started", reason="No such file: python"), "No such file"),
        (Run(PROBE, "timeout", reason="did not end within 10 s"), "did not end within 10 s"),
        (Run(PROBE, "failed", exit_code=1), "failed"),
    ],
)
def test_a_probe_that_said_nothing_leaves_everything_unknown(run: Run, word: str) -> None:
    facts = host.read(run)
    assert set(facts) == FIELDS
    for fact in facts.values():
        assert isinstance(fact, Unknown)
        assert word in fact.reason


MEMBERS = (
    *("platform", "uname", "machine", "release", "path", "cpuinfo", "count", "size", "mounts"),
    *("variables", "files", "modules", "NOFILE", "cpu.max", "memory.max", "version_json"),
    *("memory.events", "MemTotal", "anonymous", "workers", "own", "count", "named"),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["linux", "win32", "darwin", "max 100000", "10**400", "/dev/kfd", "\0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
PIECES = [
    *("system", "distribution", "libc", "cpu", "wsl", "container", "cgroup", "shm", "limits"),
    *("device_nodes", "groups", "kernel", "pci", "kfd", "tegra", "toolkits", "fabric"),
    *("driver_files", "errors", "memory", "workers"),
]


@given(st.dictionaries(st.sampled_from(PIECES), JSON, max_size=len(PIECES)))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rubbish_is_read_as_unknown_or_as_facts_of_the_right_type(data: dict[str, object]) -> None:
    facts = host.read(answered(data))
    assert set(facts) == FIELDS
    types = (Platform, Cpu, Container, Limits, Kernel, tuple, Unknown, type(None))
    assert all(isinstance(fact, types) for fact in facts.values())


@pytest.mark.parametrize(
    ("piece", "member", "value", "field"),
    [
        ("system", "platform", 7, "platform"),
        ("system", "uname", "Linux", "platform"),
        ("cpu", "cpuinfo", ["flags"], "cpu"),
        ("cpu", "count", "two", "cpu"),
        ("cpu", "count", 10**400, "cpu"),
        ("shm", "size", -5, "limits"),
        ("shm", "size", True, "limits"),
        ("shm", "free", -1, "limits"),
        ("container", "mounts", "all", "container"),
        ("kernel", "modules", [1], "kernel"),
    ],
)
@on("bare")
def test_a_member_of_the_wrong_type_makes_its_fact_unknown(
    machine: Run, piece: str, member: str, value: object, field: str
) -> None:
    fact = host.read(with_piece(machine, piece, **{member: value}))[field]
    assert isinstance(fact, Unknown)
    assert member in fact.reason


def test_overlay_mounts_of_other_containers_do_not_make_a_host_a_container(tmp_path: Path) -> None:
    mounts = BARE["proc/self/mountinfo"] + OVERLAY.replace(" / / ", " / /var/lib/docker/x ")
    root = write(tmp_path / "root", {**BARE, "proc/self/mountinfo": mounts})
    assert host.read(look(root, folder=tmp_path))["container"] is None
