"""From bytes to lines and times."""

from __future__ import annotations

import pytest

from tfy.yarn.logs_lines import Clock, LineSplitter, reduce_line

LOG = "one\ntwö\n\n\u2028still one line\nlast without end".encode()


@pytest.mark.parametrize("piece", [1, 2, 3, 7, len(LOG)])
def test_lines_do_not_depend_on_the_pieces(piece: int) -> None:
    splitter = LineSplitter(100)
    lines = [
        line for begin in range(0, len(LOG), piece) for line in splitter.feed(LOG[begin : begin + piece])
    ]
    lines += splitter.flush()
    assert [line.text for line in lines] == ["one", "twö", "", "\u2028still one line", "last without end"]
    assert [line.end for line in lines] == [104, 109, 110, 128, 144]
    assert list(splitter.flush()) == []


def test_bytes_that_are_no_text_are_replaced_and_long_lines_whole() -> None:
    splitter = LineSplitter(0)
    long = b"x" * 3_000_000
    texts = [line.text for line in splitter.feed(b"a\xff\xfeb\n" + long + b"\n")]
    assert texts == ["a\ufffd\ufffdb", long.decode()]


@pytest.mark.parametrize(
    ("text", "reduced"),
    [
        ("plain", "plain"),
        ("from windows\r", "from windows"),
        ("\r1/8 [==>...] - ETA: 17s\b\b\b\b\b\r8/8 [=====] - loss: 0.1", "8/8 [=====] - loss: 0.1"),
        ("10%|#  |\r100%|###|", "100%|###|"),
        ("10%|#  |\r      \r", "10%|#  |"),
        ("\r\r", ""),
    ],
)
def test_of_a_progress_bar_its_last_state(text: str, reduced: str) -> None:
    assert reduce_line(text) == reduced


def test_a_progress_bar_of_hours_is_not_kept_whole_and_its_bytes_are_counted() -> None:
    splitter = LineSplitter(0)
    bars = [f"\r{number}/100000 [====]".encode() + b"\b" * 20 for number in range(100_000)]
    for bar in bars:
        assert list(splitter.feed(bar)) == []
    assert splitter.state == "99999/100000 [====]"
    assert sum(map(len, splitter._parts)) < 200_000
    (line,) = splitter.feed(b"\n")
    assert (line.text, line.end) == ("99999/100000 [====]", sum(map(len, bars)) + 1)
    assert splitter.state == ""
    (line,) = splitter.feed(b"next\n")
    assert line.end == sum(map(len, bars)) + 6


def test_a_line_has_the_time_of_the_entry_that_reaches_its_end() -> None:
    clock = Clock()
    assert (clock.time_of(1), clock.last) == (None, None)
    clock.learn(b"100.00 10\n100.50 30\n102.00 31\n")
    assert [clock.time_of(end) for end in (1, 10, 11, 30, 31, 32)] == [
        100.0,
        100.0,
        100.5,
        100.5,
        102.0,
        None,
    ]
    assert clock.last == 102.0


def test_a_clock_is_learnt_piece_by_piece() -> None:
    clock = Clock()
    clock.learn(b"100.00 10\n100.50 30\n102.")
    clock.learn(b"100.50 30\n102.00 31\nnonsense\n103.00 50\n")
    assert [clock.time_of(end) for end in (10, 30, 31, 50)] == [100.0, 100.5, 102.0, 103.0]
