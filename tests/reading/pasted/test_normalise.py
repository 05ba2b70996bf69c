"""From bytes to lines: encodings, what is no text, long texts, quotes, wrapped lines."""

from __future__ import annotations

import codecs
import io

import pytest

from tests.reading.pasted import manglings, samples
from torchdoctor.model import DoctorError
from torchdoctor.reading import pasted
from torchdoctor.reading.pasted import lines, normalise

GERMAN = "OSError: [WinError 126] Das Modul für „torch“ wurde nicht gefunden — é\n" * 3
CHINESE = (
    'OSError: [WinError 1114] 动态链接库(DLL)初始化例程失败。 Error loading "E:\\c10.dll"\n' * 3
)


@pytest.mark.parametrize("text", [samples.VLLM, GERMAN, CHINESE])
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
    ],
)
def test_a_text_is_the_same_in_every_unicode_encoding(text: str, encode: object) -> None:
    data = encode(text)  # type: ignore[operator]
    assert normalise.decode(data, "x") == text
    assert normalise.load(io.BytesIO(data), "x") == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_known_by_its_zeros(encoding: str) -> None:
    assert normalise.decode(samples.VLLM.encode(encoding), "x") == samples.VLLM


def test_gbk_and_windows_1252_are_told_apart() -> None:
    assert normalise.decode(CHINESE.encode("gbk"), "x") == CHINESE
    assert normalise.decode(GERMAN.encode("cp1252"), "x") == GERMAN


def test_a_broken_byte_does_not_change_the_encoding() -> None:
    data = CHINESE.encode() + b"\xff\n" + CHINESE.encode()
    assert CHINESE in normalise.decode(data, "x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x89PNG\r\n\x1a\n", "PNG picture"),
        (b"PK\x03\x04rest", "ZIP archive"),
        (b"\x1f\x8b\x08rest", "gzip"),
        (b"text\0with\0\0\0zeros" * 9, "NUL bytes"),
        (bytes(range(1, 7)) * 40, "control characters"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line_that_names_the_file(
    data: bytes, words: str
) -> None:
    with pytest.raises(DoctorError, match=words) as refused:
        normalise.decode(data, "report.txt")
    assert "report.txt" in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.file == "report.txt"


def test_a_long_log_is_read_once_and_the_listing_in_it_is_found() -> None:
    text = manglings.in_a_log(samples.VLLM)
    kept = normalise.load(io.BytesIO(text.encode()), "x")
    assert len(kept) < len(text) // 4
    assert "GPU 1: NVIDIA A100-SXM4-80GB" in kept
    found = pasted.read([("x", kept)])
    assert dict(found.fields) == dict(pasted.read([("x", samples.VLLM)]).fields)
    assert any("long" in what for what in found.unread)


def test_a_log_that_speaks_of_torch_all_the_time_does_not_hide_the_listing() -> None:
    chatter = "".join(
        f"[rank0]: torch step {i} CUDA memory {i / 7:.2f} GiB\n" for i in range(60_000)
    )
    kept = normalise.shorten(f"{chatter}\n{samples.YES_NO}\n{chatter}")
    assert "Nvidia driver version: 418.67" in kept
    assert len(kept) < len(chatter) // 4


def test_memory_stays_bounded_when_every_line_is_new() -> None:
    text = "".join(f"torch {chr(97 + i % 26) * (i % 60)} {i:x} Error\n" for i in range(400_000))
    assert len(normalise.shorten(text)) <= normalise.MOST_KEPT + 2 * normalise.CHUNK


def read(text: str) -> list[str]:
    return [line.text for line in lines.read(text)]


def test_a_prompt_is_not_part_of_what_was_typed() -> None:
    for prompt in (
        "$ ",
        "(ml) user@host:~/work$ ",
        "[user@host work]$ ",
        "PS C:\\Users\\user> ",
        "(venv) C:\\work>",
        "root@0123456789ab:/workspace# ",
        "# ",
        "> ",
        "!",
    ):
        (line,) = lines.read(f"{prompt}pip list")
        assert (line.kind, line.text) == ("command", "pip list"), prompt
    (line,) = lines.read(">>> torch.__version__")
    assert (line.kind, line.text) == ("python", "torch.__version__")
    (line,) = lines.read("In [3]: torch.__version__")
    assert line.kind == "python"


def test_an_answer_knows_its_question() -> None:
    _, answer, _, other = lines.read("$ uname -m\naarch64\n$ uname -r\n6.1.0")
    assert (answer.command, other.command) == ("uname -m", "uname -r")


def test_a_table_of_markdown_reads_as_a_table_of_pip() -> None:
    table = "| Package | Version |\n|---------|---------|\n| torch | 2.5.1 |\n| OS | Linux |"
    assert [line.split() for line in read(table)[:3:2]] == [
        ["Package", "Version"],
        ["torch", "2.5.1"],
    ]


def test_the_table_of_nvidia_smi_stays_as_it_is() -> None:
    assert read(samples.NVIDIA_SMI)[1:] == samples.NVIDIA_SMI.split("\n")[1:]


def test_a_text_that_was_not_wrapped_is_not_joined() -> None:
    for text in samples.ALL.values():
        clean = list(normalise.clean(text))
        assert lines.joined(clean) == clean


LONG = (
    'OSError: [WinError 126] Not found. Error loading "C:\\env\\torch\\lib\\shm.dll" or one of '
    "its dependencies."
)


@pytest.mark.parametrize("shift", range(24))
def test_a_blank_where_a_line_was_cut_is_put_back(shift: int) -> None:
    line = f"{'x' * shift} {LONG}"
    text = "\n".join(line[i : i + 80].rstrip() for i in range(0, len(line), 80))
    # Cut within a word or beside a blank, the line is whole again.
    assert read(text) == [line]


def test_a_line_that_is_as_long_as_a_terminal_by_chance_is_not_joined() -> None:
    first = "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error"
    assert len(first) == 80
    assert read(f"{first}\n`ptxas` stderr:\nptxas fatal   : Value") == [
        first,
        "`ptxas` stderr:",
        "ptxas fatal   : Value",
    ]


def test_the_window_title_and_colours_of_a_terminal_are_dropped() -> None:
    text = "\x1b]0;user@host: ~\x07\x1b[1;32mPyTorch version\x1b[0m: 2.5.1\x1b[K"
    assert read(text) == ["PyTorch version: 2.5.1"]
