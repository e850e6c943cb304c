"""Flapping: the latest prices of a row, its levels, show whether it keeps leaving a price and returning to it.

A row has its newest level in columns of its own. Earlier levels are in a record of `Levels`, which a row has only
while one of its recent observations was at another price.

Arguments of the kernels:

- `slot`: the row
- `second`, `observation`: the second (modulo 2^16) and the number (modulo 2^8) of the observation that is added
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import inlined, kernel
from oddsengine.columns import NONE, SECOND, Bytes, Float, Int, Ints, Longs
from oddsengine.identity.layout import FLAP, LIVE

EARLIER = 5  # levels of a record; with the newest one, a row has up to six
RETURNS = 8  # returns to an earlier level in a record
_SCALE = 65535.0  # of a probability in 16 bits
SECONDS, _OBSERVATIONS = 65535, 255  # masks of the short numbers of seconds and observations
_MOST_SAME = 255
_NOT_FLAP = 255 ^ FLAP  # not ~FLAP: numpy has no negative unsigned bytes


class Levels(NamedTuple):
    """Records of earlier levels, oldest first, and which records are free."""

    level: npt.NDArray[np.uint16]  # probabilities in 65535ths
    time: npt.NDArray[np.uint16]  # second at which each was last seen, modulo 2^16
    observation: Bytes  # number of that observation, modulo 2^8
    returned: Bytes  # numbers of the observations that returned to a level
    returns: Bytes  # how many of these are in use
    spare: Ints  # records that were given up
    used: Longs  # records ever used, and how many of them are spare

    @classmethod
    def none(cls, room: int = 64) -> "Levels":
        """No records, with room for some."""
        return cls(
            np.zeros((room, EARLIER), np.uint16), np.zeros((room, EARLIER), np.uint16),
            np.zeros((room, EARLIER), np.uint8), np.zeros((room, RETURNS), np.uint8), np.zeros(room, np.uint8),
            np.zeros(room, np.int32), np.zeros(2, np.int64),
        )  # fmt: skip

    def wider(self) -> "Levels":
        """The same records with more room."""
        wide = Levels.none(self.spare.size + max(64, self.spare.size // 4))
        for name in self._fields:
            old = getattr(self, name)
            getattr(wide, name)[: old.shape[0]] = old
        return wide

    def taken(self, records: Longs) -> "Levels":
        """Copies of some records, and of what is spare and used."""
        return Levels(
            self.level[records], self.time[records], self.observation[records], self.returned[records],
            self.returns[records], self.spare[: self.used[1]].copy(), self.used.copy(),
        )  # fmt: skip

    def undo(self, records: Ints, past: "Levels") -> None:
        """Undo all changes since some records were `taken`, the only ones that were changed."""
        for name in ("level", "time", "observation", "returned", "returns"):
            getattr(self, name)[records] = getattr(past, name)
        self.spare[: past.spare.size] = past.spare
        self.used[:] = past.used

    def total(self, records: Ints, depth: Bytes) -> Longs:
        """Sum of the earlier levels of rows with these records and numbers of levels."""
        earlier = np.arange(EARLIER) < depth[:, None].astype(np.int64) - 1  # the others are left over
        total: Longs = self.level[records].sum(axis=1, dtype=np.int64, where=earlier)
        return total

    def release(self, records: Ints) -> None:
        """Give up records, -1 for none."""
        records = records[records >= 0]
        self.spare[self.used[1] : self.used[1] + records.size] = records
        self.used[1] += records.size


class RowHistory(NamedTuple):
    """The latest prices of each row, by slot: its newest level in columns, the earlier ones in a record."""

    level: npt.NDArray[np.uint16]  # newest price level, a probability in 65535ths
    level_time: npt.NDArray[np.uint16]  # second at which it was last seen, modulo 2^16
    level_observation: Bytes  # number of that observation, modulo 2^8
    observations: Bytes  # number of observations, modulo 2^8
    same: Bytes  # consecutive observations of the same price, up to 255
    depth: Bytes  # levels in use
    record: Ints  # place of the earlier levels in `levels`, `NONE` if there are none
    levels: Levels


class FlapLimits(NamedTuple):
    """Which prices are equal, and which returns to one are flapping."""

    away: float  # distance in probability that is another price
    back: float  # distance in probability that is the same price
    window: int  # seconds after which a level is dropped
    most_observations: int  # observations after which a level is dropped
    least_same: int  # observations at one price that clear the flag
    least_returns: int  # returns in play that set it


@kernel
def is_full(levels: Levels) -> bool:
    """Whether there is no room for another record."""
    return bool(levels.used[1] == 0 and levels.used[0] == levels.spare.size)


@kernel
def _free(slot: Int, history: RowHistory) -> None:
    """Give up a row's record."""
    levels = history.levels
    levels.spare[levels.used[1]] = history.record[slot]
    levels.used[1] += 1
    history.record[slot] = NONE


@inlined
def _drop_old(slot: Int, second: Int, observation: Int, history: RowHistory, limits: FlapLimits) -> None:
    """Drop what is old from a row's record, before short numbers wrap around, and the record if nothing is left."""
    levels, r, n = history.levels, history.record[slot], np.int64(history.depth[slot])
    n_old = 0
    while n_old < n - 1 and (
        ((np.int64(second) - np.int64(levels.time[r, n_old])) & SECONDS) > limits.window
        or ((np.int64(observation) - np.int64(levels.observation[r, n_old])) & _OBSERVATIONS) > limits.most_observations
    ):
        n_old += 1
    if n_old > 0:
        for k in range(n - 1 - n_old):
            levels.level[r, k] = levels.level[r, k + n_old]
            levels.time[r, k] = levels.time[r, k + n_old]
            levels.observation[r, k] = levels.observation[r, k + n_old]
        n -= n_old
        history.depth[slot] = np.uint8(n)
    n_old = 0
    while (
        n_old < levels.returns[r]
        and ((np.int64(observation) - np.int64(levels.returned[r, n_old])) & _OBSERVATIONS) > limits.most_observations
    ):
        n_old += 1
    if n_old > 0:
        for k in range(levels.returns[r] - n_old):
            levels.returned[r, k] = levels.returned[r, k + n_old]
        levels.returns[r] = np.uint8(levels.returns[r] - n_old)
    if n == 0 or (n == 1 and levels.returns[r] == 0):
        _free(slot, history)


@inlined
def _look_back(
    slot: Int, probability: Int, second: Int, observation: Int, history: RowHistory, flags: Bytes, limits: FlapLimits
) -> None:
    """Set FLAP, or in play note the return, if a row is back at an earlier level after it was away from it.

    - `probability`: that of the price, in 65535ths
    - `flags` (uint8 per slot): flags of rows
    """
    levels, r = history.levels, history.record[slot]
    low, high = np.float64(history.level[slot]), np.float64(history.level[slot])
    for k in range(np.int64(history.depth[slot]) - 2, -1, -1):
        x = np.float64(levels.level[r, k])
        age = (np.int64(second) - np.int64(levels.time[r, k])) & SECONDS
        observations_since = (np.int64(observation) - np.int64(levels.observation[r, k])) & _OBSERVATIONS
        if age > limits.window or observations_since > limits.most_observations:
            break
        is_away = max(high - x, x - low) > limits.away * _SCALE
        if is_away and abs(np.float64(probability) - x) <= limits.back * _SCALE:
            if (flags[slot] & LIVE) == 0:
                flags[slot] = flags[slot] | FLAP
            elif history.same[slot] == 1:
                if levels.returns[r] == levels.returned.shape[1]:
                    for i in range(levels.returned.shape[1] - 1):
                        levels.returned[r, i] = levels.returned[r, i + 1]
                    levels.returns[r] = np.uint8(levels.returns[r] - 1)
                levels.returned[r, levels.returns[r]] = observation
                levels.returns[r] = np.uint8(levels.returns[r] + 1)
                if levels.returns[r] >= limits.least_returns:
                    flags[slot] = flags[slot] | FLAP
            break
        low = min(low, x)
        high = max(high, x)


@inlined
def _keep_level(slot: Int, history: RowHistory) -> None:
    """Add a row's newest level to its earlier ones, of which the oldest is dropped if there are too many."""
    levels, r, n = history.levels, history.record[slot], np.int64(history.depth[slot])
    if r < 0:
        if levels.used[1] > 0:
            levels.used[1] -= 1
            r = levels.spare[levels.used[1]]
        else:
            r = np.int32(levels.used[0])
            levels.used[0] += 1
        levels.returns[r] = 0
        history.record[slot] = r
    if n - 1 == levels.level.shape[1]:
        for k in range(n - 2):
            levels.level[r, k] = levels.level[r, k + 1]
            levels.time[r, k] = levels.time[r, k + 1]
            levels.observation[r, k] = levels.observation[r, k + 1]
        n -= 1
    levels.level[r, n - 1] = history.level[slot]
    levels.time[r, n - 1] = history.level_time[slot]
    levels.observation[r, n - 1] = history.level_observation[slot]
    history.depth[slot] = np.uint8(n + 1)


@kernel
def observe(
    slot: Int, now: Int, last_time: Int, q: Float, history: RowHistory, flags: Bytes, limits: FlapLimits
) -> None:
    """Add an observation at a price with probability `q` to the history; the previous one was at `last_time`.

    Sets or clears FLAP: one return to an earlier level, or in play `least_returns` of them within `most_observations`
    observations. There is room for another record.

    - `now`: time of the observation, microseconds
    - `flags` (uint8 per slot): flags of rows
    """
    probability = np.uint16(np.int64(np.rint(q * _SCALE)))
    second = np.uint16((now // SECOND) & SECONDS)
    if now - last_time > limits.window * SECOND:
        history.depth[slot] = 0
    observation = np.uint8((np.int64(history.observations[slot]) + 1) & _OBSERVATIONS)
    history.observations[slot] = observation
    if history.record[slot] >= 0:
        _drop_old(slot, second, observation, history, limits)
    if history.depth[slot] == 0:
        history.same[slot] = 1
        history.depth[slot] = 1
    else:
        last_level = history.level[slot]
        if abs(np.float64(probability) - np.float64(last_level)) <= limits.back * _SCALE:
            history.same[slot] = np.uint8(min(np.int64(history.same[slot]) + 1, np.int64(_MOST_SAME)))
            if history.same[slot] >= limits.least_same:
                flags[slot] = flags[slot] & _NOT_FLAP
        else:
            history.same[slot] = 1
        if probability != last_level:
            _look_back(slot, probability, second, observation, history, flags, limits)
            _keep_level(slot, history)
    history.level[slot] = probability
    history.level_time[slot] = second
    history.level_observation[slot] = observation
