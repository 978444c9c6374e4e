"""Which steps of a long work are worth a line."""

from nilometer.engines.tell import Sparing, quiet


class Clock:
    """A clock the test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_first_step_and_each_tenth_are_told() -> None:
    clock = Clock()
    sparing = Sparing(clock)
    told = []
    for percent in range(101):
        if sparing.worth(percent, 100):
            told.append(percent)
        clock.now_s += 1.5
    assert told == [0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91, 98]


def test_quick_work_is_told_once_a_second_at_most() -> None:
    clock = Clock()
    sparing = Sparing(clock)
    told = []
    for percent in range(101):
        if sparing.worth(percent, 100):
            told.append(percent)
        clock.now_s += 0.0625
    assert told == [0, 16, 32, 48, 64, 80, 96]


def test_slow_work_is_told_after_ten_seconds_of_silence() -> None:
    clock = Clock()
    sparing = Sparing(clock)
    assert sparing.worth(0, 0)
    clock.now_s += 9.9
    assert not sparing.worth(0, 0)
    clock.now_s += 0.1
    assert sparing.worth(0, 0)


def test_quiet_takes_anything() -> None:
    quiet("engine_fetching", done_bytes=1)
