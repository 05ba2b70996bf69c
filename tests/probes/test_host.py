from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.probes.recorded import BARE, MACHINES, OVERLAY, look, write
from torchdoctor.resource import read_text


def test_the_probe_looks_at_this_machine_and_every_piece_succeeds(tmp_path: Path) -> None:
    run = look(folder=tmp_path)
    assert run.outcome == "answered", run
    assert run.data["errors"] == {}
    assert run.stdout.text == ""
    assert run.stderr.text == ""
    system = run.data["system"]
    assert isinstance(system, dict)
    assert system["platform"] == sys.platform
    assert system["uname"]["machine"] == os.uname().machine


def test_the_probe_names_the_whole_of_what_it_looked_at(tmp_path: Path) -> None:
    run = look(folder=tmp_path)
    assert set(run.data) == {
        *("system", "distribution", "libc", "cpu", "wsl", "container", "cgroup", "shm", "limits"),
        *("memory", "workers"),
        *(
            "network",
            "device_nodes",
            "groups",
            "kernel",
            "pci",
            "kfd",
            "tegra",
            "toolkits",
            "fabric",
        ),
        *("driver_files", "nvidia", "errors", "done"),
    }


@pytest.mark.parametrize("name", MACHINES)
def test_a_recorded_machine_is_looked_at_without_an_error(name: str, tmp_path: Path) -> None:
    run = look(write(tmp_path / "root", MACHINES[name]), folder=tmp_path)
    assert (run.outcome, run.data["errors"]) == ("answered", {})


def test_what_cannot_be_read_is_an_error_of_that_piece_alone(tmp_path: Path) -> None:
    root = write(tmp_path / "root", BARE)
    (root / "proc/modules").unlink()
    (root / "proc/modules").mkdir()
    run = look(root, folder=tmp_path)
    errors = run.data["errors"]
    assert isinstance(errors, dict)
    assert set(errors) == {"kernel"}
    assert "IsADirectoryError" in errors["kernel"]
    assert "kernel" not in run.data
    assert "driver_files" in run.data
    assert run.outcome == "answered"


def test_an_old_system_without_os_release_is_named_by_distro(tmp_path: Path) -> None:
    root = write(
        tmp_path / "root",
        {"etc/centos-release": "CentOS Linux release 7.9.2009 (Core)\n", "proc/cpuinfo": ""},
    )
    seen = look(root, folder=tmp_path).data["distribution"]
    assert isinstance(seen, dict)
    assert (seen["distro"]["id"], seen["distro"]["version"]) == ("centos", "7.9.2009")


def test_limits_are_taken_from_the_group_up_to_its_mount_in_version_2(tmp_path: Path) -> None:
    root = write(
        tmp_path / "root",
        {
            "proc/self/cgroup": "0::/a/b\n",
            "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/memory.max": "4294967296\n",
            "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
        },
    )
    assert look(root, folder=tmp_path).data["cgroup"] == [
        {"memory.max": "max\n", "folder": "/sys/fs/cgroup/a/b"},
        {
            "memory.max": "4294967296\n",
            "cpu.max": "150000 100000\n",
            "folder": "/sys/fs/cgroup/a",
        },
    ]


def test_limits_of_version_1_are_found_under_a_mount_of_the_groups_own_folder(
    tmp_path: Path,
) -> None:
    root = write(
        tmp_path / "root",
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/docker/4f0c\n4:memory:/docker/4f0c\n0::/\n",
            "proc/self/mountinfo": (
                "40 31 0:30 /docker/4f0c /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                "41 31 0:31 /docker/4f0c /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
            ),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    folders = look(root, folder=tmp_path).data["cgroup"]
    assert isinstance(folders, list)
    assert {one["folder"] for one in folders} == {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu"}


@pytest.mark.parametrize(
    ("path", "mounted"), [("/../other", "/"), ("/elsewhere/than/the/mount", "/docker/4f0c")]
)
def test_a_group_that_cannot_be_seen_from_here_leaves_the_mounted_one(
    path: str, mounted: str, tmp_path: Path
) -> None:
    root = write(
        tmp_path / "root",
        {
            "proc/self/cgroup": f"0::{path}\n",
            "proc/self/mountinfo": f"30 23 0:26 {mounted} /sys/fs/cgroup rw - cgroup2 none rw\n",
            "sys/fs/cgroup/memory.max": "1073741824\n",
            "sys/fs/memory.max": "5\n",
            "sys/fs/cgroup/han/the/mount/memory.max": "6\n",
        },
    )
    assert look(root, folder=tmp_path).data["cgroup"] == [
        {"memory.max": "1073741824\n", "folder": "/sys/fs/cgroup"}
    ]


def test_a_toolkit_is_found_by_variable_path_and_folder_but_once(tmp_path: Path) -> None:
    files = {
        **BARE,
        "opt/mine/bin/nvcc": "",
        "opt/mine/include/cuda.h": "#define CUDA_VERSION 11080",
    }
    root = write(tmp_path / "root", files)
    environ = {"PATH": "/opt/mine/bin", "CUDA_HOME": "/usr/local/cuda"}
    found = look(root, folder=tmp_path, environ=environ).data["toolkits"]
    assert isinstance(found, list)
    assert [(one["source"], one["path"]) for one in found] == [
        ("CUDA_HOME", "/usr/local/cuda"),
        ("PATH", "/opt/mine"),
        ("folder", "/usr/local/cuda-10.2"),
    ]
    assert found[0]["real"] == "/usr/local/cuda-12.4"


def test_links_of_driver_libraries_are_followed_inside_the_recorded_machine(
    tmp_path: Path,
) -> None:
    root = write(tmp_path / "root", BARE)
    files = look(root, folder=tmp_path).data["driver_files"]
    assert isinstance(files, dict)
    links = {one["path"]: one["real"] for one in files["libraries"]}
    home = "/usr/lib/x86_64-linux-gnu"
    assert links[f"{home}/libnvidia-ml.so.1"] == f"{home}/libnvidia-ml.so.535.183.01"
    assert files["packages"] == ["libnvidia-compute-535:amd64"]


def test_processes_are_searched_for_the_fabric_manager_only_beside_switches(
    tmp_path: Path,
) -> None:
    files = {"proc/1/comm": "systemd\n", "proc/77/comm": "nv-fabricmanage\n"}
    without = look(write(tmp_path / "a", files), folder=tmp_path).data["fabric"]
    files["dev/nvidia-nvswitch0"] = ""
    beside = look(write(tmp_path / "b", files), folder=tmp_path).data["fabric"]
    assert isinstance(without, dict)
    assert isinstance(beside, dict)
    assert without["processes"] is None
    assert beside["processes"] == ["nv-fabricmanage"]


def test_variables_of_a_container_are_kept_and_others_are_not(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"proc/self/mountinfo": OVERLAY})
    environ = {"PATH": "/", "NVIDIA_VISIBLE_DEVICES": "all", "SECRET": "x"}
    seen = look(root, folder=tmp_path, environ=environ).data["container"]
    assert isinstance(seen, dict)
    assert seen["variables"] == {"NVIDIA_VISIBLE_DEVICES": "all"}


@pytest.mark.parametrize("name", ["host", "driver"])
def test_the_source_is_ascii_and_old_syntax(name: str) -> None:
    source = read_text("probes", f"{name}.py")
    assert source.isascii()
    ast.parse(source, feature_version=(3, 8))


def test_a_root_that_is_not_there_leaves_a_whole_answer(tmp_path: Path) -> None:
    run = look(tmp_path / "nothing", folder=tmp_path)
    assert run.outcome == "answered"
    assert run.data["pci"] is None


def test_the_probe_writes_nothing_where_it_runs(tmp_path: Path) -> None:
    look(folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_prints_does_not_spoil_the_answer(tmp_path: Path) -> None:
    source = read_text("probes", "host.py").replace(
        "    for look in LOOKS:", "    os.write(1, b'{noise}\\n')\n    for look in LOOKS:"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-", "{}"],
        input=source.encode(),
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    assert b"noise" not in done.stdout
    assert done.stderr == b"{noise}\n"


def test_a_machine_without_any_trace_of_nvidia_is_told_from_one_with_a_trace(
    tmp_path: Path,
) -> None:
    bare = tmp_path / "bare"
    (bare / "proc").mkdir(parents=True)
    (bare / "proc/version").write_text("Linux version 6.1.0\n")
    assert look(root=bare, folder=tmp_path).data["nvidia"] is False
    traces = {
        "etc/ld.so.cache": "\0libnvidia-ml.so.1\0/opt/odd/libnvidia-ml.so.1\0",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Kernel Module  535.183.01\n",
        "usr/bin/nvidia-smi": "",
        "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
        "proc/version": "Linux version 5.15.0-microsoft-standard-WSL2\n",
    }
    for number, (path, text) in enumerate(traces.items()):
        root = tmp_path / str(number)
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
        if path.endswith("class"):
            (root / path).with_name("vendor").write_text("0x10de\n")
            (root / path).with_name("device").write_text("0x20b0\n")
        assert look(root=root, folder=tmp_path).data["nvidia"] is True, path
