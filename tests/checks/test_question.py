"""Questions in a few words, in English and Chinese, and what is none."""

from __future__ import annotations

import pytest

from tests.checks.run import names
from tests.conftest import Judge
from tests.corpus_score import judge as judge_text
from torchdoctor.facts import Symptom
from torchdoctor.reading.traceback import told
from torchdoctor.registry import Check
from torchdoctor.tables import load
from torchdoctor.tables import symptoms as table

TOPICS = load("symptoms_words")["topic"]
WORDS = [(word, topic["name"]) for topic in TOPICS for word in topic["words"]]

PHRASES = {
    "sampler + shuffle": "sampler-and-shuffle",
    "sampler 和 shuffle 冲突": "sampler-and-shuffle",
    "default process group has not been initialized": "process-group-not-initialised",
    "进程组未初始化": "process-group-not-initialised",
    "WinError 1114": "vcredist-too-old",
    "c10.dll 初始化例程失败": "vcredist-too-old",
    "hang": "slow-rank-timeout",
    "training hangs": "slow-rank-timeout",
    "训练卡住": "slow-rank-timeout",
    "rank 0 stuck in barrier": "slow-rank-timeout",
    "low metric": "evaluation-padding-counted",
    "验证指标偏低": "evaluation-padding-counted",
    "set_epoch": "missing-set-epoch",
    "每个 epoch 顺序一样": "missing-set-epoch",
    "find_unused_parameters": "unused-parameters",
    "loss too smooth": "loader-not-sharded",
    "loss 过于平滑": "loader-not-sharded",
    "各卡数据相同": "loader-not-sharded",
    "NCCL timeout": "slow-rank-timeout",
    "NCCL 超时": "slow-rank-timeout",
    "OOM": "host-oom-killed",
    "num_workers": "dataloader-too-many-workers",
    "端口被占用": "rendezvous-port-in-use",
    "module. prefix": "module-prefix-keys",
    "local_rank": "local-rank-arg",
    "drop_last": "sampler-drops-tail",
    "torch.cuda.is_available() False": "cpu-only-build",
    "检测不到GPU": "cpu-only-build",
    "accelerate sampler": "sharded-twice",
    "SyncBatchNorm": "batchnorm-not-synchronised",
    "batch_sampler": "sampler-and-shuffle",
    "metric jitter": "metric-not-gathered",
    "指标抖动": "metric-not-gathered",
    "损失异常平滑": "loader-not-sharded",
    "only GPU 0 is used": "set-device-missing",
    "显存不足": "set-device-missing",
    "barrier": "slow-rank-timeout",
    "超时": "slow-rank-timeout",
    "uneven inputs": "uneven-steps-hang",
    "各卡步数不同": "uneven-steps-hang",
    "resume": "epoch-not-resumed",
    "断点续训": "epoch-not-resumed",
    "same seed on every rank": "same-seed-on-every-rank",
    "随机种子": "same-seed-on-every-rank",
    "torch.cuda.amp deprecated": "deprecated-amp",
    "检查点损坏": "save-on-every-rank",
    "map_location": "load-without-map-location",
    "MASTER_ADDR": "master-unreachable",
    "主节点连不上": "master-unreachable",
    "NCCL_SOCKET_IFNAME": "wrong-socket-ifname",
    "destroy_process_group": "process-group-not-destroyed",
    "空分片": "empty-shard",
    "NCCL on Windows": "backend-unavailable",
    "DataParallel": "data-parallel",
    "key 不匹配": "module-prefix-keys",
    "type(dataloader.sampler)": "sharded-twice",
    "WinError 126": "libomp140-missing",
    "找不到指定的程序": "torch-stale-dll",
    "WinError 193": "torch-files-corrupt",
    "页面文件太小": "paging-file-too-small",
    "WinError 4551": "app-control-blocked",
    "WinError 225": "antivirus-blocked",
    "路径过长": "windows-long-path",
}


@pytest.mark.parametrize(("phrase", "cause"), PHRASES.items())
def test_a_bare_phrase_is_answered_by_a_note_and_by_what_decides(phrase: str, cause: str) -> None:
    findings, plan = judge_text(phrase)
    of_the_question = [f for f in findings if f.severity == "note"]
    assert of_the_question[0].name == cause, [f.name for f in findings]
    assert not plan.steps
    if not [f for f in findings if f.severity != "note"]:
        assert "To decide: " in of_the_question[0].summary
    assert len(of_the_question) <= 3


def test_a_phrase_is_never_an_error(judge: Judge) -> None:
    for topic in TOPICS:
        asked = Symptom(table.ASKED, {"topic": topic["name"]}, "text", topic["words"][0])
        outcome = judge(symptoms=(asked,))
        assert set(names(outcome).values()) == {"note"}
        confidences = [finding.confidence for finding in outcome.findings]
        assert confidences == ["likely", *["possible"] * (len(confidences) - 1)]


@pytest.mark.parametrize(("word", "name"), WORDS)
def test_each_word_leads_to_a_topic(word: str, name: str) -> None:
    found = told(word, "text")
    topics = [s.values["topic"] for s in found if s.name == table.ASKED]
    known = [s for s in found if s.name not in (table.ASKED, *table.told())]
    assert topics or known, name


@pytest.mark.parametrize(
    "text",
    [
        "the change of the room",
        "epoch 3, loss 0.12",
        "ValueError: something hangs",
        "$ python train.py --num_workers 4 and it does not hang",
        "one\ntwo\nthree hang\n",
        "hang " * 60,
    ],
)
def test_what_is_no_question_is_not_answered(text: str) -> None:
    assert [s for s in told(text, "text") if s.name == table.ASKED] == []


def test_a_message_is_judged_and_not_asked_about() -> None:
    text = "sampler option is mutually exclusive with shuffle"
    assert [s.name for s in told(text, "text")] == ["sampler-with-shuffle"]


def test_each_topic_is_whole(check: Check) -> None:
    for topic in TOPICS:
        assert set(topic) == {"name", "words", "decide", "source", "causes"}
        assert 1 <= len(topic["causes"]) <= 3
        assert {cause for cause, _ in topic["causes"]} <= set(check.names)
        assert all(word == word.casefold() for word in topic["words"])


def test_an_unknown_topic_says_nothing(judge: Judge) -> None:
    assert table.topic("no such topic") is None
    assert judge(symptoms=(Symptom(table.ASKED, {"topic": "no such topic"}),)).status == "clear"
    assert judge().status == "unknown"
