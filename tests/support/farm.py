"""One day of a simulated farm: ten places, each with a temperature and a humidity every minute.

A seed gives the same events with every Python 3. Only `random()` is drawn, which Python promises
not to change, and nothing but +, - and * is used on it. Temperatures wander around 31 degrees,
humidity around 40 %.
"""

import random

Reading = tuple[int, str, int, float]
"""Milliseconds since midnight, T or H, the place, and the value."""


def _bell(rng: random.Random) -> float:
    """About a normal variate, of mean 0 and standard deviation 1."""
    total = -6.0
    for _ in range(12):
        total += rng.random()  # the rounding of sum() differs between versions of Python
    return total


def events(seed: int) -> list[Reading]:
    """The readings in the order of time, no two at one time."""
    rng = random.Random(seed)
    found: list[Reading] = []
    for place in range(1, 11):
        temperature, humidity = 25.0, 50.0
        for minute in range(1440):
            temperature += _bell(rng) - 0.02 * (temperature - 31.0)
            humidity += 2.0 * _bell(rng) - 0.02 * (humidity - 40.0)
            begin = 60_000 * minute
            found.append((begin + int(30_000 * rng.random()), "T", place, round(temperature, 1)))
            half = begin + 30_000
            found.append((half + int(30_000 * rng.random()), "H", place, round(humidity, 1)))
    found.sort(key=lambda one: (one[0], one[2], one[1]))
    last = -1
    for number, (at, kind, place, value) in enumerate(found):
        last = max(at, last + 1)
        found[number] = (last, kind, place, value)
    return found
