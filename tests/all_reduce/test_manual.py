"""The lines and manifests of all-reduce.md are what launchers, and this program, take."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from torchdoctor.commands import all_reduce
from torchdoctor.commands.parser import Parser
from torchdoctor.distributed.launcher import NAMES

TEXT = Path(__file__).parents[2].joinpath(".github/docs/all-reduce.md").read_text("utf-8")
OURS = ("-m", "torchdoctor", "all-reduce", "--worker")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def lines() -> list[list[str]]:
    whole = "\n".join(blocks("sh")).replace("\\\n", " ")
    return [shlex.split(line) for line in whole.splitlines() if line.strip()]


def manifests() -> dict[str, Mapping[str, Any]]:
    return {one["kind"]: one for text in blocks("yaml") for one in yaml.safe_load_all(text)}


def pods() -> Iterator[Mapping[str, Any]]:
    found = manifests()
    for replica in found["PyTorchJob"]["spec"]["pytorchReplicaSpecs"].values():
        yield replica["template"]["spec"]
    yield found["Job"]["spec"]["template"]["spec"]


def words_of(pod: Mapping[str, Any]) -> list[str]:
    command = pod["containers"][0]["command"]
    return shlex.split(command[2]) if command[:2] == ["sh", "-c"] else list(command)


def test_every_line_starts_one_rank_of_ours() -> None:
    assert [words[0] for words in lines()] == ["torchrun", "srun", "mpirun", "mpiexec"]
    for words in (*lines(), *map(words_of, pods())):
        assert tuple(words[-4:]) == OURS
        parser = Parser()
        all_reduce.configure(parser)
        assert parser.parse_args(words[-1:]).worker is True


def test_the_manifests_are_whole() -> None:
    found = manifests()
    assert {kind: one["apiVersion"] for kind, one in found.items()} == {
        "PyTorchJob": "kubeflow.org/v1",
        "Service": "v1",
        "Job": "batch/v1",
    }
    job, service = found["Job"], found["Service"]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert service["spec"]["clusterIP"] == "None"  # the word, which YAML does not take for null
    replicas = found["PyTorchJob"]["spec"]["pytorchReplicaSpecs"]
    assert {name: one["replicas"] for name, one in replicas.items()} == {"Master": 1, "Worker": 1}
    assert found["PyTorchJob"]["spec"]["nprocPerNode"] == "8"  # a text, as the operator wants it


def test_every_pod_has_its_gpus_and_enough_shared_memory() -> None:
    for pod in pods():
        (container,) = pod["containers"]
        assert container["name"] == "pytorch"  # the operator looks for this name
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
        (mount,) = container["volumeMounts"]
        volumes = {one["name"]: one for one in pod["volumes"]}
        assert mount["mountPath"] == "/dev/shm"  # noqa: S108 - as the manifest has it
        assert volumes[mount["name"]]["emptyDir"] == {"medium": "Memory"}


def test_a_first_node_is_named_as_the_job_names_its_pods() -> None:
    words = words_of(manifests()["Job"]["spec"]["template"]["spec"])
    assert words[words.index("--master-addr") + 1] == "torchdoctor-0.torchdoctor"
    assert words[words.index("--node-rank") + 1] == "$JOB_COMPLETION_INDEX"


@pytest.mark.parametrize("variables", NAMES.values(), ids=NAMES)
def test_the_variables_of_every_launcher_are_told(variables: tuple[str, ...]) -> None:
    assert ", ".join(f"`{name}`" for name in variables) in TEXT
