from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Container

AMD = make.nodes("/dev/kfd", "/dev/dri/renderD128", allowed=False, mode="0660", owner="root:render")
ROCM = make.build("2.13.0+rocm7.2")
HERE = {"platform": make.linux(), "container": None}


def test_closed_amd_files_want_membership_of_their_group(judge: Judge) -> None:
    (found,) = judge(**HERE, torch=ROCM, device_nodes=AMD).findings
    assert (found.name, found.severity) == ("gpu-device-permission", "error")
    assert "/dev/kfd" in found.summary
    assert found.steps[0].commands.bash == ('sudo usermod -aG render "$USER"',)


def test_closed_nvidia_files_without_a_group_are_opened(judge: Judge) -> None:
    shut = make.nodes("/dev/nvidia0", "/dev/nvidiactl", allowed=False, owner="root:root")
    (found,) = judge(**HERE, torch=make.build(), device_nodes=shut).findings
    assert found.steps[0].commands.bash == ("sudo chmod a+rw /dev/nvidia0 /dev/nvidiactl",)


def test_one_open_gpu_is_enough(judge: Judge) -> None:
    others = make.nodes("/dev/nvidia1", "/dev/nvidia2", allowed=False)
    known = HERE | {"device_nodes": (*make.NVIDIA_NODES, *others)}
    assert judge(**known, torch=make.build()).status == "clear"


def test_only_the_files_that_the_build_needs_count(judge: Judge) -> None:
    assert judge(**HERE, torch=make.build(), device_nodes=AMD).status == "clear"
    assert judge(**HERE, torch=make.build("2.13.0+cpu"), device_nodes=AMD).status == "clear"
    caps = make.nodes("/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-modeset", allowed=False)
    assert judge(**HERE, torch=make.build(), device_nodes=caps).status == "clear"


def test_torch_that_works_settles_it(judge: Judge) -> None:
    works = make.runtime(make.device(make.a100()))
    assert judge(**HERE, torch=ROCM, device_nodes=AMD, runtime=works).status == "clear"


def test_a_container_is_started_with_them(judge: Judge) -> None:
    known = HERE | {"container": make.DOCKER}
    (found,) = judge(**known, torch=ROCM, device_nodes=AMD).findings
    assert "--device /dev/kfd" in found.steps[0].title
    assert "--group-add render" in found.steps[0].title


def test_it_cannot_tell_without_the_files(judge: Judge) -> None:
    assert judge(**HERE, torch=ROCM).status == "unknown"


def test_the_steps_cure(cure: Planner) -> None:
    for container in (None, make.DOCKER):
        known = HERE | {"container": container}
        plan = cure(**known, torch=ROCM, device_nodes=AMD)
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])


KFD = make.symptom("gpu-device-refused", "a text", file="/dev/kfd")


def test_a_message_alone_tells_it(judge: Judge) -> None:
    (found,) = judge(symptoms=(KFD,)).findings
    assert (found.name, found.severity) == ("gpu-device-permission", "error")
    assert "/dev/kfd" in found.summary
    assert found.steps[0].commands.bash == ('sudo usermod -aG render,video "$USER"',)
    other = make.symptom("gpu-device-refused", "a text", file="/dev/nvidia0")
    (found,) = judge(symptoms=(other,)).findings
    assert found.steps[0].commands.bash == ("ls -l /dev/nvidia0",)


def test_in_a_container_the_group_of_the_host_is_given_by_its_number(judge: Judge) -> None:
    (found,) = judge(symptoms=(KFD,), container=Container("docker")).findings
    assert "--group-add $(getent group render" in found.steps[0].commands.bash[0]


def test_a_message_of_a_file_that_is_open_now_is_old(judge: Judge) -> None:
    opened = make.nodes("/dev/kfd", allowed=True)
    known = HERE | {"symptoms": (KFD,), "device_nodes": opened}
    assert judge(**known, torch=ROCM).status == "clear"
    assert judge(symptoms=()).status == "unknown"


def test_what_the_message_asks_for_cures(cure: Planner) -> None:
    assert cure(symptoms=(KFD,), container=None).verdict == "healthy"
    assert cure(symptoms=(KFD,), container=Container("docker")).verdict == "healthy"


RULED = make.nodes(
    "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", allowed=False, mode="0666", owner="root"
)


def test_what_is_open_to_all_and_refused_wants_a_job_with_gpus(judge: Judge, cure: Planner) -> None:
    job = HERE | {"device_nodes": RULED, "variables": {"SLURM_JOB_ID": "77"}}
    (found,) = judge(**job, torch=make.build()).findings
    assert (found.name, found.steps[0].name) == ("gpu-device-permission", "ask-for-gpus")
    assert found.steps[0].commands.bash == ("sbatch --gpus-per-node=1 JOB.sh",)
    assert cure(**job, torch=make.build()).verdict == "healthy"
    inside = job | {"container": Container("podman")}
    (found,) = judge(**inside, torch=make.build()).findings
    assert found.steps[0].commands.bash == ("podman run --device nvidia.com/gpu=all IMAGE",)


def test_what_is_closed_by_its_mode_or_outside_of_a_job_wants_none(judge: Judge) -> None:
    closed = make.nodes("/dev/nvidia0", allowed=False, mode="0660", owner="root:video")
    job = HERE | {"device_nodes": closed, "variables": {"SLURM_JOB_ID": "77"}}
    (found,) = judge(**job, torch=make.build()).findings
    assert found.steps[0].name == "join-gpu-groups"
    bare = HERE | {"device_nodes": RULED, "variables": {}}
    (found,) = judge(**bare, torch=make.build()).findings
    assert found.steps[0].name == "open-gpu-devices"
