"""Read a pickle as plain data: dicts, lists, tuples, texts, numbers, None, True and False.

A pickle is a program, and pickle.loads runs it: whoever can write a dump could run what he likes.
Here nothing but the opcodes that build plain data is known, and everything is bounded; any other
opcode (a global, a call, a persistent name, an extension) ends the reading. The opcodes and what
they do are those of the standard library's pickletools.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

Value = object
MOST_VALUES = 10_000_000
LONGEST_NUMBER = 16
"""Bytes of an integer."""


class NotPlain(ValueError):  # noqa: N818 - says what the pickle is
    """Raised for a pickle that is broken, or wants more than plain data."""


def loads(raw: bytes) -> Value:
    """Return the value that the pickle *raw* describes.

    Raises:
        NotPlain: it is cut, broken, too large, or asks for anything but plain data.

    """
    try:
        return _Machine(raw).run()
    except NotPlain:
        raise
    except (IndexError, struct.error, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise NotPlain(f"it is no whole pickle ({type(error).__name__})") from error


class _Machine:
    """The stack, the marks and the memo of one pickle."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0
        self.stack: list[Value] = []
        self.marks: list[list[Value]] = []
        self.memo: dict[int, Value] = {}

    def run(self) -> Value:
        raw, steps, memo = self.raw, _STEPS, self.memo
        for _ in range(MOST_VALUES):
            code = raw[self.at]
            self.at += 1
            if code in _OFTEN:  # what a dump consists of, nine times in ten
                short = raw[self.at]
                self.at += 1
                if code == _GET:
                    self.stack.append(memo[short])
                elif code == _PUT:
                    memo[short] = self.stack[-1]
                else:
                    self.stack.append(short)
                continue
            if code == _STOP:
                if self.marks or len(self.stack) != 1:
                    raise NotPlain("it ends with something left over")
                return self.stack[0]
            step = steps.get(code)
            if step is None:
                raise NotPlain(f"it asks for more than plain data (opcode {code:#04x})")
            step(self)
        raise NotPlain("it has too many values")

    def take(self, length: int) -> bytes:
        block = self.raw[self.at : self.at + length]
        if len(block) != length:
            raise NotPlain("it is cut")
        self.at += length
        return block

    def number(self, form: str) -> int:
        size = _SIZES[form[1]]
        return int.from_bytes(self.take(size), "little", signed=form[1] == "i")

    def line(self) -> bytes:
        end = self.raw.index(b"\n", self.at)
        block = self.raw[self.at : end]
        self.at = end + 1
        return block

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def since_mark(self) -> list[Value]:
        values = self.stack
        self.stack = self.marks.pop()
        return values


def _mark(machine: _Machine) -> None:
    machine.marks.append(machine.stack)
    machine.stack = []


def _text(form: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        raw = machine.take(machine.number(form))
        machine.push(raw.decode("utf-8", "backslashreplace"))

    return step


def _bytes(form: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.push(machine.take(machine.number(form)))

    return step


def _integer(form: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.push(machine.number(form))

    return step


def _long(form: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        length = machine.number(form)
        if not 0 <= length <= LONGEST_NUMBER:
            raise NotPlain("it has a number that is too long")
        machine.push(int.from_bytes(machine.take(length), "little", signed=True))

    return step


def _float(machine: _Machine) -> None:
    (value,) = struct.unpack(">d", machine.take(8))
    machine.push(float(value))


def _constant(value: Value) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(value)


def _tuple(many: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        if len(machine.stack) < many:
            raise NotPlain("its stack is empty")
        values = machine.stack[-many:]
        del machine.stack[-many:]
        machine.push(tuple(values))

    return step


def _tuple_since_mark(machine: _Machine) -> None:
    machine.push(tuple(machine.since_mark()))


def _list_since_mark(machine: _Machine) -> None:
    machine.push(machine.since_mark())


def _dict_since_mark(machine: _Machine) -> None:
    values = machine.since_mark()
    machine.push({})
    _fill(machine, values)


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _extend(machine, [value])


def _appends(machine: _Machine) -> None:
    _extend(machine, machine.since_mark())


def _extend(machine: _Machine, values: list[Value]) -> None:
    last = machine.stack[-1]
    if not isinstance(last, list):
        raise NotPlain("it appends to what is no list")
    last.extend(values)


def _set_item(machine: _Machine) -> None:
    value = machine.stack.pop()
    _fill(machine, [machine.stack.pop(), value])


def _set_items(machine: _Machine) -> None:
    _fill(machine, machine.since_mark())


def _fill(machine: _Machine, values: list[Value]) -> None:
    last = machine.stack[-1]
    if not isinstance(last, dict) or len(values) % 2:
        raise NotPlain("it sets an item of what is no dict")
    for key, value in zip(values[::2], values[1::2], strict=True):
        # A tuple in a tuple in a tuple, and so on, would take the stack to be hashed.
        if not isinstance(key, str | int):
            raise NotPlain("it has a key that is neither text nor number")
        last[key] = value


def _put(form: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.memo[machine.number(form)] = machine.stack[-1]

    return step


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _get(form: str) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.push(machine.memo[machine.number(form)])

    return step


def _protocol(machine: _Machine) -> None:
    machine.number("<B")


def _frame(machine: _Machine) -> None:
    machine.number("<Q")


def _old_integer(machine: _Machine) -> None:
    """I: a number, or True and False as 01 and 00."""
    line = machine.line()
    known: dict[bytes, Value] = {b"01": True, b"00": False}
    if line in known:
        machine.push(known[line])
    elif len(line) <= LONGEST_NUMBER:
        machine.push(int(line))
    else:
        raise NotPlain("it has a number that is too long")


_SIZES = {"B": 1, "H": 2, "i": 4, "I": 4, "Q": 8}
"""Bytes of the numbers, by the letters of the module struct."""
_STOP, _GET, _PUT, _BYTE = b".hqK"
_OFTEN = frozenset((_GET, _PUT, _BYTE))
_STEPS: dict[int, Callable[[_Machine], None]] = {
    0x80: _protocol,
    0x95: _frame,
    ord("("): _mark,
    ord("N"): _constant(None),
    0x88: _constant(True),  # noqa: FBT003 - the value of that opcode
    0x89: _constant(False),  # noqa: FBT003
    ord("J"): _integer("<i"),
    ord("M"): _integer("<H"),
    0x8A: _long("<B"),
    0x8B: _long("<i"),
    ord("I"): _old_integer,
    ord("G"): _float,
    ord("X"): _text("<I"),
    0x8C: _text("<B"),
    0x8D: _text("<Q"),
    ord("B"): _bytes("<I"),
    ord("C"): _bytes("<B"),
    ord("]"): lambda machine: machine.push([]),
    ord("}"): lambda machine: machine.push({}),
    ord(")"): _constant(()),
    ord("t"): _tuple_since_mark,
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("l"): _list_since_mark,
    ord("d"): _dict_since_mark,
    ord("a"): _append,
    ord("e"): _appends,
    ord("s"): _set_item,
    ord("u"): _set_items,
    ord("r"): _put("<I"),
    0x94: _memoize,
    ord("j"): _get("<I"),
}
