// Binary searches over the columns of a lane: tasks in time's order, none beginning before its predecessor ends.

/** The first index in [first, last) whose value is at least `value`; `last` if there is none. */
export function lowerBound(sorted: Float64Array, first: number, last: number, value: number): number {
  while (first < last) {
    const middle = (first + last) >>> 1;
    if (sorted[middle] < value) first = middle + 1;
    else last = middle;
  }
  return first;
}

/** The first index in [first, last) whose value is above `value`; `last` if there is none. */
export function upperBound(sorted: Float64Array, first: number, last: number, value: number): number {
  while (first < last) {
    const middle = (first + last) >>> 1;
    if (sorted[middle] <= value) first = middle + 1;
    else last = middle;
  }
  return first;
}

/** As lowerBound, in steps that double: for results near `first`. */
export function lowerBoundNear(sorted: Float64Array, first: number, last: number, value: number): number {
  let step = 1;
  while (first + step < last && sorted[first + step] < value) {
    first += step;
    step *= 2;
  }
  return lowerBound(sorted, first, Math.min(last, first + step + 1), value);
}

/** What runs at `time_s` in [first, last); else the nearest within `reach_s`; else -1. */
export function at(
  start_s: Float64Array, end_s: Float64Array, first: number, last: number, time_s: number, reach_s: number,
): number {
  const before = upperBound(start_s, first, last, time_s) - 1;
  const after = before + 1;
  const since_s = before >= first ? Math.max(0, time_s - end_s[before]) : Infinity;
  const until_s = after < last ? start_s[after] - time_s : Infinity;
  if (Math.min(since_s, until_s) > reach_s) return -1;
  return since_s <= until_s ? before : after;
}
