// What changed from a to b.
import {change, seconds} from "./format";
import type {Difference} from "./report";

/** What is not there takes no time, and what sums leave behind in the last digits is no change. */
export function delta({a_s, b_s}: Difference): number {
  const [a, b] = [a_s ?? 0, b_s ?? 0];
  return Math.abs(b - a) <= 1e-9 * Math.max(a, b) ? 0 : b - a;
}

export function shortChange(time_s: number): string {
  return change(time_s, value => seconds(value, 3));
}

export function onlyIn(a: number | null, b: number | null): "new" | "gone" | undefined {
  return a === null ? "new" : b === null ? "gone" : undefined;
}
