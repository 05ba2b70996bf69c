"""torch.randperm on the CPU, number for number, without torch.

torch draws from a Mersenne Twister that is seeded with one 32-bit number, and shuffles from the
front: position i changes places with position i + random % (n - i). Python's generator is the same
twister behind another way of seeding, so that its state is set instead.
Source: aten/src/ATen/native/TensorFactories.cpp and aten/src/ATen/core/MT19937RNGEngine.h.
"""

from __future__ import annotations

import random

WORDS = 624
MULTIPLIER = 1812433253
MASK = 0xFFFFFFFF


def randperm(length: int, seed: int) -> list[int]:
    """Return torch.randperm(length) by a generator whose manual_seed(seed) was called."""
    draw = _twister(seed).getrandbits
    order = list(range(length))
    for i in range(length - 1):
        other = i + draw(32) % (length - i)
        order[i], order[other] = order[other], order[i]
    return order


def _twister(seed: int) -> random.Random:
    word = seed & MASK
    words = [word]
    for index in range(1, WORDS):
        word = (MULTIPLIER * (word ^ (word >> 30)) + index) & MASK
        words.append(word)
    twister = random.Random()  # noqa: S311 - the very numbers that torch draws
    twister.setstate((3, (*words, WORDS), None))
    return twister
