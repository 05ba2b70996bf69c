"""No secret survives redaction, and a snapshot means the same after it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from torchdoctor.child import Run, Stream
from torchdoctor.redact import redact
from torchdoctor.snapshot import Snapshot, dump

WHO = {"user": "jdoe", "host": "gpu-box-7", "home": "/home/jdoe"}


def redacted(data: Mapping[str, object] | None = None, text: str = "", **who: str) -> str:
    run = Run(
        ("/home/jdoe/v/bin/python",), "answered", data=data or {}, stderr=Stream(text, 1, "x")
    )
    return dump(redact(Snapshot("now", {"p": run}, {"cwd": "/home/jdoe/w"}), **(WHO | who)))


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
