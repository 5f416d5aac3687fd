// One lane of tasks, passes or pieces of communication onto a surface. What is narrower than a bucket of pixels is merged with what
// begins in the same bucket. Buckets are counted from the step's beginning, so that they do not flicker while the view moves.

import type {Blocks} from "./blocks";
import {type Colours, shadeOf, shades} from "./colours";
import type {Pieces} from "./communication";
import type {Glyphs} from "./glyphs";
import type {Model} from "./model";
import {lowerBoundNear, upperBound} from "./search";
import type {Surface} from "./surface";
import {pixelsPerSecond, type View} from "./view";

const bucket_px = 1;
const separated_px = 4; // wider items leave a pixel free to the next one
const bandsFrom_px = 4; // height of a pass
const margin_px = 3; // on each side of a text
const lookedAt = 12; // items of a bucket at most, to choose its colour

/** Works in device pixels. Made once; nothing is allocated per frame. */
export class LanePainter {
  colours!: Colours;
  private from_s = 0;
  private to_s = 0;
  private ratio = 1;
  private scale = 1; // device pixels per second
  private bucket_s = 1;
  private left = 0; // of what is being drawn
  private right = 0;

  constructor(
    readonly surface: Surface,
    private readonly glyphs: Glyphs,
  ) {}

  /** `ratio`: device pixels per CSS pixel. */
  begin(view: View, ratio: number, colours: Colours): void {
    this.from_s = view.start_s;
    this.to_s = view.end_s;
    this.ratio = ratio;
    this.scale = pixelsPerSecond(view) * ratio;
    this.bucket_s = (bucket_px * ratio) / this.scale;
    this.colours = colours;
  }

  px(length: number): number {
    return Math.round(length * this.ratio);
  }

  x(time_s: number): number {
    return Math.round((time_s - this.from_s) * this.scale);
  }

  /** Tasks [first, last) of one stream: kernels in the colour of their phase, communication in that of its axis. */
  tasks(model: Model, first: number, last: number, top: number, bottom: number, labelled: boolean): void {
    const {start_s, end_s, busyUpTo_s, type, microBatch, types} = model.tasks;
    const {phase, onPhase, axis, onAxis} = this.colours;
    for (let i = upperBound(end_s, first, last, this.from_s); i < last && start_s[i] < this.to_s; ) {
      const j = this.runEnd(start_s, end_s, i, last);
      const shown = j === i + 1 ? i : this.longest(start_s, end_s, i, j);
      const kernel = model.isKernel[type[shown]] === 1;
      const style = kernel ? model.phaseOf[type[shown]] * shades + shadeOf(microBatch[shown]) : model.axisOf[type[shown]];
      const fill = kernel ? phase[style] : axis[style];
      this.place(start_s[i], end_s[j - 1], true);
      if (j > i + 1) {
        const covered = Math.min(1, (busyUpTo_s[j] - busyUpTo_s[i]) / this.bucket_s);
        this.surface.blend(this.left, top, this.right, bottom, fill, Math.ceil(256 * covered));
      } else {
        this.surface.rect(this.left, top, this.right, bottom, fill);
        if (labelled) this.label(types[type[i]].name, top, bottom, kernel ? onPhase[style] : onAxis[style]);
      }
      i = j;
    }
  }

  /** Passes, with the shares of recomputation (above) and weight gradients (below) as bands. */
  blocks(blocks: Blocks, top: number, bottom: number, labelled: boolean): void {
    const {start_s, end_s} = blocks;
    for (let i = upperBound(end_s, 0, start_s.length, this.from_s); i < start_s.length && start_s[i] < this.to_s; ) {
      const j = this.runEnd(start_s, end_s, i, start_s.length);
      this.place(start_s[i], end_s[j - 1], true);
      this.block(blocks, j === i + 1 ? i : this.longest(start_s, end_s, i, j), top, bottom, labelled && j === i + 1);
      i = j;
    }
  }

  /** The label stands in the highest band. */
  private block(blocks: Blocks, block: number, top: number, bottom: number, labelled: boolean): void {
    const {surface, left, right} = this;
    const {phase, onPhase} = this.colours;
    const microBatch = blocks.microBatch[block];
    const pass = blocks.pass[block];
    const shade = shadeOf(microBatch);
    const main = (pass === 0 ? 0 : pass === 1 ? 2 : 4) * shades + shade;
    const banded = bottom - top >= bandsFrom_px;
    const upper = banded ? top + Math.round((bottom - top) * blocks.recompute[block]) : top;
    const lower = banded ? bottom - Math.round((bottom - top) * blocks.weight[block]) : bottom;
    if (upper > top) surface.rect(left, top, right, upper, phase[shades + shade]);
    surface.rect(left, upper, right, lower, phase[main]);
    if (lower < bottom) surface.rect(left, lower, right, bottom, phase[3 * shades + shade]);
    if (!labelled || microBatch < 0 || right - left < 2 * margin_px) return;
    for (const text of blockTexts(microBatch, blocks.chunk[block])) {
      const highest = Math.max(upper - top, lower - upper, bottom - lower);
      const done =
        lower - upper === highest ? this.label(text, upper, lower, onPhase[main], top, bottom)
        : bottom - lower === highest ? this.label(text, lower, bottom, onPhase[3 * shades + shade], top, bottom)
        : this.label(text, top, upper, onPhase[shades + shade], top, bottom);
      if (done) return;
    }
  }

  /** A row's communication: what kernels hide is pale; of a bucket, the exposed part is as high as its share of the time. */
  pieces(model: Model, pieces: Pieces, top: number, bottom: number): void {
    const {start_s, end_s, exposedUpTo_s, task} = pieces;
    const {axis, hidden} = this.colours;
    for (let i = upperBound(end_s, 0, task.length, this.from_s); i < task.length && start_s[i] < this.to_s; ) {
      const j = this.runEnd(start_s, end_s, i, task.length);
      const shown = j === i + 1 ? i : this.longest(start_s, end_s, i, j);
      const kind = model.axisOf[model.tasks.type[task[shown]]];
      const share = j === i + 1 ? pieces.exposed[i] : Math.min(1, (exposedUpTo_s[j] - exposedUpTo_s[i]) / this.bucket_s);
      const middle = bottom - (share > 0 ? Math.max(1, Math.round((bottom - top) * share)) : 0);
      this.place(start_s[i], end_s[j - 1], false);
      if (middle > top) this.surface.rect(this.left, top, this.right, middle, hidden[kind]);
      if (middle < bottom) this.surface.rect(this.left, middle, this.right, bottom, axis[kind]);
      i = j;
    }
  }

  outline(left: number, right: number, top: number, bottom: number, thickness: number, colour: number): void {
    const {surface} = this;
    surface.rect(left - thickness, top - thickness, right + thickness, top, colour);
    surface.rect(left - thickness, bottom, right + thickness, bottom + thickness, colour);
    surface.rect(left - thickness, top, left, bottom, colour);
    surface.rect(right, top, right + thickness, bottom, colour);
  }

  /** Height of labels from here on, in CSS pixels. */
  font(size: number): void {
    this.glyphs.use(this.px(size));
  }

  /** Sets where [start, end) is drawn: at least a pixel wide. */
  private place(start_s: number, end_s: number, separated: boolean): void {
    this.left = this.x(start_s);
    this.right = Math.max(this.left + 1, this.x(end_s));
    if (separated && this.right - this.left >= separated_px * this.ratio) this.right -= Math.floor(this.ratio);
  }

  /** In the middle of what is in view of the item, if its width fits; in [top, bottom) as far as the whole item's height allows. */
  private label(text: string, top: number, bottom: number, colour: number, highest = top, lowest = bottom): boolean {
    const begin = Math.max(this.left, 0);
    const end = Math.min(this.right, this.surface.width);
    if (end - begin < 2 * margin_px) return false;
    const mask = this.glyphs.of(text);
    if (end - begin < mask.width + 2 * margin_px * this.ratio) return false;
    const y = Math.min(Math.max(highest, (top + bottom - mask.height) / 2), Math.max(highest, lowest - mask.height));
    this.surface.text(mask, Math.round((begin + end - mask.width) / 2), Math.round(y), colour);
    return true;
  }

  /** The index after the last of [i, last) that is merged with `i`. */
  private runEnd(start_s: Float64Array, end_s: Float64Array, i: number, last: number): number {
    if (end_s[i] - start_s[i] >= this.bucket_s) return i + 1;
    const bucketEnd_s = (Math.floor(start_s[i] / this.bucket_s) + 1) * this.bucket_s;
    const j = lowerBoundNear(start_s, i + 1, last, bucketEnd_s);
    const wide = j > i + 1 && end_s[j - 1] - start_s[j - 1] >= this.bucket_s; // only the last can be
    return wide ? j - 1 : j;
  }

  private longest(start_s: Float64Array, end_s: Float64Array, i: number, j: number): number {
    const step = Math.max(1, Math.floor((j - i) / lookedAt));
    let longest = i;
    for (let k = i; k < j; k += step) if (end_s[k] - start_s[k] > end_s[longest] - start_s[longest]) longest = k;
    return longest;
  }
}

const texts = new Map<number, readonly string[]>();

/** From the longest to the shortest. */
function blockTexts(microBatch: number, chunk: number): readonly string[] {
  const key = microBatch * 65536 + chunk;
  let found = texts.get(key);
  if (!found) {
    const long = chunk >= 0 ? [`micro-batch ${microBatch} · chunk ${chunk}`] : [];
    texts.set(key, (found = [...long, `micro-batch ${microBatch}`, `${microBatch}`]));
  }
  return found;
}
