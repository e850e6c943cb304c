"""Flapping: the latest prices of a row, its levels, show whether it keeps leaving a price and returning to it.

A row has its newest level in columns of its own. Earlier levels are in a record of `Levels`, which a row has only
while one of its recent observations was at another price.

Columns of the kernels:

- `slot`: the row
- `record` (int32 per slot): the row's place in `levels`, or `NONE`
- `levels`: as `Levels`
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from oddsengine._jit import kernel
from oddsengine.columns import NONE, SECOND, Bytes, Ints, Longs
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

    def taken(self, records: Ints) -> "Levels":
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


@kernel
def full(levels):
    """Whether there is no room for another record."""
    return levels.used[1] == 0 and levels.used[0] == levels.spare.size


@kernel
def _free(slot, record, levels):
    """Give up a row's record."""
    levels.spare[levels.used[1]] = record[slot]
    levels.used[1] += 1
    record[slot] = NONE


@kernel
def observe(
    slot, now, last_time, q, level, level_time, level_observation, observations, same, depth, record, flags, levels,
    away, back, window, most_observations, least_same, least_returns,
):  # fmt: skip
    """Add an observation at a price with probability `q` to the history; the previous one was at `last_time`.

    Sets or clears FLAP: one return to an earlier level, or in play `least_returns` of them within `most_observations`
    observations. There is room for another record.

    - `now`: time of the observation, microseconds
    - `level`, `level_time`, `level_observation` (per slot): the newest level, with the second and the observation at
      which it was last seen, as in `Levels`
    - `observations` (uint8 per slot): number of observations, modulo 2^8
    - `same` (uint8 per slot): observations in a row at the newest level, at most 255
    - `depth` (uint8 per slot): number of levels
    - `flags` (uint8 per slot): flags of rows
    - `away`, `back`: distance in probability that is another price, and that is the same price
    - `window`: seconds after which a level is dropped
    - `most_observations`: observations after which a level is dropped
    - `least_same`: observations at one price that clear the flag
    - `least_returns`: returns in play that set it
    """
    probability = np.uint16(np.int64(np.rint(q * _SCALE)))
    second = np.uint16((now // SECOND) & SECONDS)
    if now - last_time > window * SECOND:
        depth[slot] = 0
    observations[slot] = np.uint8((np.int64(observations[slot]) + 1) & _OBSERVATIONS)
    observation = observations[slot]
    n = np.int64(depth[slot])
    if record[slot] >= 0:
        # Old levels are dropped at once, before the short numbers of their second and observation wrap around.
        r = record[slot]
        n_old = 0
        while n_old < n - 1 and (
            ((np.int64(second) - np.int64(levels.time[r, n_old])) & SECONDS) > window
            or ((np.int64(observation) - np.int64(levels.observation[r, n_old])) & _OBSERVATIONS) > most_observations
        ):
            n_old += 1
        if n_old > 0:
            for k in range(n - 1 - n_old):
                levels.level[r, k] = levels.level[r, k + n_old]
                levels.time[r, k] = levels.time[r, k + n_old]
                levels.observation[r, k] = levels.observation[r, k + n_old]
            n -= n_old
            depth[slot] = np.uint8(n)
        n_old = 0
        while (
            n_old < levels.returns[r]
            and ((np.int64(observation) - np.int64(levels.returned[r, n_old])) & _OBSERVATIONS) > most_observations
        ):
            n_old += 1
        if n_old > 0:
            for k in range(levels.returns[r] - n_old):
                levels.returned[r, k] = levels.returned[r, k + n_old]
            levels.returns[r] = np.uint8(levels.returns[r] - n_old)
        if n == 0 or (n == 1 and levels.returns[r] == 0):
            _free(slot, record, levels)
    r = record[slot]
    if n == 0:
        same[slot] = 1
    else:
        last_level = level[slot]
        if abs(np.float64(probability) - np.float64(last_level)) <= back * _SCALE:
            same[slot] = np.uint8(min(np.int64(same[slot]) + 1, _MOST_SAME))
            if same[slot] >= least_same:
                flags[slot] = flags[slot] & _NOT_FLAP
        else:
            same[slot] = 1
        if probability == last_level:
            level_time[slot] = second
            level_observation[slot] = observation
            return
        low, high = np.float64(last_level), np.float64(last_level)
        for k in range(n - 2, -1, -1):
            x = np.float64(levels.level[r, k])
            age = (np.int64(second) - np.int64(levels.time[r, k])) & SECONDS
            observations_since = (np.int64(observation) - np.int64(levels.observation[r, k])) & _OBSERVATIONS
            if age > window or observations_since > most_observations:
                break
            is_away = max(high - x, x - low) > away * _SCALE
            if is_away and abs(np.float64(probability) - x) <= back * _SCALE:
                if (flags[slot] & LIVE) == 0:
                    flags[slot] = flags[slot] | FLAP
                elif same[slot] == 1:
                    if levels.returns[r] == levels.returned.shape[1]:
                        for i in range(levels.returned.shape[1] - 1):
                            levels.returned[r, i] = levels.returned[r, i + 1]
                        levels.returns[r] = np.uint8(levels.returns[r] - 1)
                    levels.returned[r, levels.returns[r]] = observation
                    levels.returns[r] = np.uint8(levels.returns[r] + 1)
                    if levels.returns[r] >= least_returns:
                        flags[slot] = flags[slot] | FLAP
                break
            low = min(low, x)
            high = max(high, x)
        if r < 0:
            if levels.used[1] > 0:
                levels.used[1] -= 1
                r = levels.spare[levels.used[1]]
            else:
                r = np.int32(levels.used[0])
                levels.used[0] += 1
            levels.returns[r] = 0
            record[slot] = r
        if n - 1 == levels.level.shape[1]:
            for k in range(n - 2):
                levels.level[r, k] = levels.level[r, k + 1]
                levels.time[r, k] = levels.time[r, k + 1]
                levels.observation[r, k] = levels.observation[r, k + 1]
            n -= 1
        levels.level[r, n - 1] = last_level
        levels.time[r, n - 1] = level_time[slot]
        levels.observation[r, n - 1] = level_observation[slot]
    level[slot] = probability
    level_time[slot] = second
    level_observation[slot] = observation
    depth[slot] = np.uint8(n + 1)
