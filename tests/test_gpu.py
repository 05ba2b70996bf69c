from __future__ import annotations

from tests.checks import make
from torchdoctor import gpu
from torchdoctor.facts import Driver, Expectation, Unknown

TWO = (make.a100(0), make.a100(1))


def test_only_a_driver_without_any_complaint_answers() -> None:
    assert gpu.answers(make.driver())
    for driver in (
        None,
        Unknown(),
        Driver(None, hung=True),
        Driver(None, garbage=True),
        Driver(None, error="Unknown Error"),
        Driver(None, code=18),
    ):
        assert not gpu.answers(driver)


def test_a_variable_hides_what_comes_after_its_first_bad_entry() -> None:
    for value, left in (
        ("1,0", (1, 0)),
        ("0,7,1", (0,)),
        ("", ()),
        ("-1", ()),
        ("GPU-00000001", (1,)),
    ):
        seen = gpu.visible(TWO, {"CUDA_VISIBLE_DEVICES": value})
        assert tuple(card.index for card in seen) == left


def test_what_cannot_be_compared_hides_nothing() -> None:
    assert gpu.visible(TWO, Unknown()) == TWO
    assert gpu.visible(TWO, {}) == TWO
    assert gpu.visible(TWO, {"CUDA_VISIBLE_DEVICES": "MIG-1"}) == TWO


def test_a_number_of_gpus_is_about_cuda_unless_another_is_named() -> None:
    assert gpu.expects_cuda(Expectation(gpus_at_least=2))
    assert gpu.expects_cuda(Expectation(cuda_at_least="12.6"))
    assert not gpu.expects_cuda(Expectation(accelerator="rocm", gpus_at_least=2))
    assert not gpu.expects_cuda(Expectation())


def test_our_own_trial_is_no_wish_of_the_user() -> None:
    for source in ("torch.cuda", "import torch", "output of import torch", "torch.cuda, device 0"):
        assert gpu.asked_for((make.symptom("no-nvidia-driver", source),)) is None
    assert gpu.asked_for((make.symptom("no-nvidia-driver", "train.log"),)) is not None


def test_the_driver_of_wsl_is_the_one_of_windows() -> None:
    assert gpu.driver_platform(make.linux(wsl=2)) == "win_amd64"
    assert gpu.driver_platform(make.linux()) == "linux_x86_64"
