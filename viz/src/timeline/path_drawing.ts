// The critical path over the rows: what is not on it is veiled, its runs have an outline, its way from row to row a line.

import type {Scene} from "./scene";
import type {LanePainter} from "./lane";
import {bottomOf, type Line} from "./layout";
import type {Path, Runs} from "./path";
import {lowerBound, upperBound} from "./search";

const outline_px = 1.5;
const hop_px = 1;
const veil = 190; // of 256

/** Rows are those of the first timeline. */
export function paintPath(scene: Scene, path: Path, lanes: LanePainter): void {
  for (const line of scene.layout.lines) {
    if (line.timeline === 0 && path.rows[line.row]) paintRuns(scene, path.rows[line.row], line, lanes);
  }
  paintHops(scene, path, lanes);
}

function paintRuns({view, colours}: Scene, {start_s, end_s}: Runs, line: Line, lanes: LanePainter): void {
  const {surface} = lanes;
  const top = lanes.px(line.top);
  const bottom = lanes.px(bottomOf(line));
  const thickness = Math.max(1, lanes.px(outline_px));
  let veiledUpTo = 0;
  let i = upperBound(end_s, 0, start_s.length, view.start_s);
  while (i < start_s.length && start_s[i] < view.end_s) {
    const left = lanes.x(start_s[i]);
    let right = Math.max(left + 1, lanes.x(end_s[i]));
    for (++i; i < start_s.length && lanes.x(start_s[i]) <= right + 1; ++i) right = Math.max(right, lanes.x(end_s[i]));
    surface.blend(veiledUpTo, top, left, bottom, colours.page, veil);
    veiledUpTo = right;
    if (line.stream < 0) lanes.outline(left, right, top, bottom, thickness, colours.ink);
  }
  surface.blend(veiledUpTo, top, surface.width, bottom, colours.page, veil);
}

function paintHops({view, colours, layout}: Scene, {hops}: Path, lanes: LanePainter): void {
  const thickness = Math.max(1, lanes.px(hop_px));
  const last = lowerBound(hops.time_s, 0, hops.time_s.length, view.end_s);
  for (let i = lowerBound(hops.time_s, 0, last, view.start_s); i < last; ++i) {
    const from = layout.rowLines[hops.from[i]];
    const to = layout.rowLines[hops.to[i]];
    const upper = from.top < to.top ? from : to;
    const lower = upper === from ? to : from;
    const left = lanes.x(hops.time_s[i]) - thickness;
    lanes.surface.rect(left, lanes.px(bottomOf(upper)), left + thickness, lanes.px(lower.top), colours.ink);
  }
}
