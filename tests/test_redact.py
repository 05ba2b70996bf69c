"""No secret survives redaction, and a snapshot means the same after it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.compare import machines
from tests.redaction.secrets import person
from tests.redaction.seeds import seeded, survivors
from torchdoctor import inputs, plan
from torchdoctor.child import Run, Stream
from torchdoctor.confidential import GONE
from torchdoctor.facts import Expectation
from torchdoctor.reading import machine
from torchdoctor.redact import redact
from torchdoctor.registry import all_checks
from torchdoctor.run import run
from torchdoctor.snapshot import Snapshot, dump, parse

CHECKS = all_checks()
WHO = {"user": "jdoe", "host": "gpu-box-7", "home": "/home/jdoe"}


def redacted(data: Mapping[str, object] | None = None, text: str = "", **who: str) -> str:
    one = Run(
        ("/home/jdoe/v/bin/python",), "answered", data=data or {}, stderr=Stream(text, 1, "x")
    )
    return dump(redact(Snapshot("now", {"p": one}, {"cwd": "/home/jdoe/w"}), **(WHO | who)))


SECRETS = {
    "home": ("/home/jdoe/project/train.py", "jdoe"),
    "another home": ("C:\\Users\\Erika Muster\\x", "Erika"),
    "user at host": ("ssh jdoe@gpu-box-7", "gpu-box-7"),
    "host": ("kernel: gpu-box-7 said", "gpu-box-7"),
    "URL credentials": ("https://bob:hunter2@example.com/simple", "hunter2"),
    "URL user": ("https://s3cr3tt0ken@example.com/simple", "s3cr3tt0ken"),
    "query": ("https://example.com/x?access_token=abcdef123", "abcdef123"),
    "GitHub token": ("ghp_0123456789abcdefghij0123456789abcdef", "ghp_0123"),
    "Hugging Face token": ("hf_abcdefghijABCDEFGHIJabcdefghij1234", "hf_abc"),
    "AWS key": ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    "JWT": ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "eyJhbGciOiJI"),
    "GPU UUID": ("GPU-8f1e2d3c-1111-2222-3333-444455556666", "8f1e2d3c"),
    "MAC": ("link/ether 52:54:00:ab:cd:ef brd", "52:54:00:ab:cd:ef"),
    "IPv4": ("MASTER_ADDR is 10.3.5.147 now", "10.3.5.147"),
    "IPv6": ("addr 2001:db8:85a3::8a2e:370:7334 up", "8a2e:370:7334"),
    "mail": ("write to jane.doe@example.org", "jane.doe"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_survives(name: str) -> None:
    text, secret = SECRETS[name]
    assert secret not in redacted({"anything": text, "list": [{"deep": text}]}, text)


def test_secret_variables_lose_their_value_and_keep_their_name() -> None:
    out = redacted({"variables": {"MY_API_TOKEN": "plainword", "CUDA_VISIBLE_DEVICES": "0"}})
    assert "plainword" not in out
    assert "MY_API_TOKEN" in out
    variables = json.loads(out)["probes"]["p"]["data"]["variables"]
    assert variables["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.parametrize(
    "kept",
    [
        "nvidia-curand==10.3.5.147",
        "nvidia_cublas-13.1.1.3.dist-info",
        "driver 580.65.06, CUDA 13.0",
        "127.0.0.1",
        "0.0.0.0",  # noqa: S104 - nothing is bound
        "::1",
        "at 12:34:56",
        "the root cause",
        "libcudart.so.12.4.127",
    ],
)
def test_what_is_no_secret_stays(kept: str) -> None:
    assert json.loads(redacted({"x": kept}))["probes"]["p"]["data"]["x"] == kept


def test_versions_that_look_like_addresses_stay() -> None:
    data = {"distributions": [{"name": "nvidia-curand", "version": "10.3.5.147"}]}
    assert '"10.3.5.147"' in redacted(data)


def test_stand_ins_are_consistent() -> None:
    one, two = (
        "GPU-8f1e2d3c-1111-2222-3333-444455556666",
        "GPU-8f1e2d3c-1111-2222-3333-444455556667",
    )
    data = {"gpus": [one, two], "CUDA_VISIBLE_DEVICES": two}
    out = json.loads(redacted(data))["probes"]["p"]["data"]
    assert out["gpus"][1] == out["CUDA_VISIBLE_DEVICES"] != out["gpus"][0]


def test_a_path_below_home_stays_below_it() -> None:
    data = {"prefix": "/home/jdoe/v", "site": "/home/jdoe/v/lib/python3.11/site-packages"}
    out = json.loads(redacted(data))["probes"]["p"]["data"]
    assert out["site"].startswith(out["prefix"] + "/")


def test_a_common_user_name_is_no_word_to_hunt() -> None:
    text = redacted({"x": "root cause /root/v"}, user="root", home="/root")
    assert json.loads(text)["probes"]["p"]["data"]["x"] == "root cause /root/v"


def test_it_says_that_it_is_redacted() -> None:
    assert json.loads(redacted())["redacted"] is True


# ---- what must stay ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kept",
    [
        "tokenizers==0.15.2 tokenizers 0.15.2",
        "nvidia-cudnn-cu12         9.1.0.70",
        '"nvidia-cublas-cu12": "12.1.3.1"',
        "opencv-python             4.10.0.84",
        "Driver Version: 12.1.3.4",
        "undefined symbol: _ZN3c104cuda9SetDeviceEab12Cd34Ef56",
        "?reportAndThrow@SomethingL0ng1@c10@@SAXPEBD0@Z",
        "cudaErrorNoKernelImageForDevice cudaErrorCompatNotSupportedOnDevice",
        "git_version = 'f404a070611ccffda607bc65e4636d8ff404a070'",
        "torch-2.9.1+cu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        "WORLD_SIZE=2 CUDA_VISIBLE_DEVICES=0,1 USE_CUDA=ON",
        "NCCL_SOCKET_IFNAME=eth7",
        "--max-tokens 4096 --pin-memory yes",
        "ERROR: Could not find a version that satisfies the requirement torch",
        "WARNING: Ignoring invalid distribution ~orch (/srv/v/lib)",
        "c10::Error at::native::empty",
        "https://download.pytorch.org/whl/cu128/torch-2.9.1%2Bcu128-cp311-cp311-win_amd64.whl",
        "https://index.example.org/simple/torch/",
        "/home/conda/feedstock_root/build_artifacts/libtorch_1700000000000/work",
    ],
)
def test_what_only_looks_like_a_secret_stays(kept: str) -> None:
    assert json.loads(redacted({"x": kept}))["probes"]["p"]["data"]["x"] == kept


def test_the_secret_after_its_option_is_taken_out_of_a_command() -> None:
    one = Run(("curl", "--token", "plainword", "-u", "me:other"), "answered")
    out = redact(Snapshot("now", {"p": one}), **WHO).probes["p"].command
    assert out == ("curl", "--token", GONE, "-u", GONE)


def test_names_that_become_alike_stay_two() -> None:
    data = {"files": {"/home/ann/x": 1, "/home/bob/x": 2}}
    out = json.loads(redacted(data))["probes"]["p"]["data"]["files"]
    assert sorted(out.values()) == [1, 2]


def test_a_user_who_is_called_as_a_word_that_machines_say_is_hidden_in_paths_only() -> None:
    text = "torch is broken in /srv/torch/x"
    out = redacted({"x": text}, user="torch", home="/srv/torch")
    assert json.loads(out)["probes"]["p"]["data"]["x"] == "torch is broken in /home/user/x"


def test_an_address_has_one_stand_in_wherever_it_is_written() -> None:
    data = {"own": ["10.1.2.3"], "line": "MASTER_ADDR=10.1.2.3 tcp://10.1.2.3:29500"}
    out = json.loads(redacted(data))["probes"]["p"]["data"]
    assert out["line"].count(out["own"][0]) == 2


# ---- the proof: secrets of many kinds, in many places ------------------------------------------

CORPUS = Path(__file__).parent / "corpus"
SYSTEMS = ("linux", "linux", "win32", "darwin")
PUT = 24
BATCHES = [range(first, first + 25) for first in range(0, 500, 25)]


def a_snapshot(number: int) -> dict[str, object]:
    """Return what a snapshot may hold: a look at this machine, or a public report."""
    if number % 2:
        return machines.base()
    reports = sorted(CORPUS.glob("*/input.txt"))
    text = reports[number // 2 % len(reports)].read_text("utf-8", "replace")
    snapshot = Snapshot("now", {"text x": Run((), "answered", stdout=Stream(text, len(text)))})
    made: dict[str, object] = json.loads(dump(snapshot))
    return made


def judged(snapshot: Snapshot) -> list[tuple[object, ...]]:
    """Return what is found, by all but the values that are shown."""
    outcomes = run(CHECKS, machine.read(snapshot, Expectation()))
    return [
        (f.name, f.severity, f.confidence, f.because_of, [e.fact for e in f.evidence])
        for f in plan.findings_of(outcomes)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers", [pytest.param(range(5), marks=pytest.mark.sample), *BATCHES], ids=str
)
def test_no_seeded_secret_survives_and_no_finding_changes(numbers: range) -> None:
    kinds: set[str] = set()
    for number in numbers:
        rng = random.Random(number)  # noqa: S311 - the same every time
        who = person(rng, rng.choice(SYSTEMS))
        document, put = seeded(a_snapshot(number), who, rng, PUT)
        before = parse(json.dumps(document).encode(), "x")
        after = redact(before, user=who.user, host=who.host, home=who.home)
        assert survivors(dump(after), put) == [], number
        assert judged(after) == judged(before), number
        kinds |= {secret.kind for secret, _ in put}
    assert len(kinds) > 3 * len(numbers) // 4


def test_the_seeds_are_seen_where_nothing_is_taken_out() -> None:
    rng = random.Random(0)  # noqa: S311 - the same every time
    who = person(rng, "linux")
    document, put = seeded(machines.base(), who, rng, 200)
    text = dump(parse(json.dumps(document).encode(), "x"))
    found = {id(secret) for secret, _, _ in survivors(text, put)}
    assert len(found) == len(put)


def test_a_report_means_the_same_after_redaction() -> None:
    for report in sorted(CORPUS.glob("*/input.txt"))[::12]:
        snapshot = inputs.read([str(report)])
        assert judged(redact(snapshot, **WHO)) == judged(snapshot), report
