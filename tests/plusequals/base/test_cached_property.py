"""A property that is computed when it is first asked for."""

from __future__ import annotations

import threading

from plusequals.base.cached_property import cached_property


class Square:
    """A number whose square is computed once, by whoever asks first."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.asked = 0
        self.meet = threading.Barrier(2)

    @cached_property
    def area(self) -> int:
        """The side by itself."""
        self.asked += 1
        return self.side * self.side

    @cached_property
    def token(self) -> object:
        """Something that two threads make at the same time."""
        self.meet.wait(20)
        return object()


def test_it_is_computed_when_it_is_first_asked_for_and_kept() -> None:
    square = Square(3)
    assert square.asked == 0
    assert (square.area, square.area, square.asked) == (9, 9, 1)
    assert isinstance(Square.area, cached_property)
    assert Square.area.__doc__ == "The side by itself."


def test_no_thread_waits_for_another_and_both_get_the_same() -> None:
    square, found = Square(3), list[object]()
    threads = [threading.Thread(target=lambda: found.append(square.token)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]
