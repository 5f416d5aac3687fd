// One frame: every line in view, the grid, and over them what is marked.

import {Glyphs} from "./glyphs";
import {type Hit, showsKernels} from "./hit";
import {LanePainter} from "./lane";
import {bottomOf, communicationTop, type Line} from "./layout";
import {paintPath} from "./path_drawing";
import type {Scene} from "./scene";
import {clear, Surface} from "./surface";
import {tickStep, type View} from "./view";

const tickEvery_px = 90;

export const tickStepOf = (view: View) => tickStep(view.end_s - view.start_s, Math.max(1, view.width / tickEvery_px));

export class Drawing {
  private readonly canvas: CanvasRenderingContext2D;
  private readonly lanes = new LanePainter(new Surface(), new Glyphs());

  constructor(element: HTMLCanvasElement) {
    this.canvas = element.getContext("2d", {willReadFrequently: true})!; // its pixels come from here, not from the GPU
  }

  /** `ratio`: device pixels per CSS pixel. */
  frame(scene: Scene, ratio: number): void {
    const {lanes} = this;
    const {surface} = lanes;
    const {width, height} = this.canvas.canvas;
    surface.resize(width, height);
    lanes.begin(scene.view, ratio, scene.colours);
    const top = lanes.px(scene.top);
    const bottom = lanes.px(scene.bottom);
    surface.rect(0, top, width, bottom, clear);
    const {lines} = scene.layout;
    for (const line of lines) if (onScreen(scene, line)) this.background(scene, line);
    this.grid(scene, top, bottom);
    for (const line of lines) if (onScreen(scene, line)) this.line(scene, line);
    if (scene.path) paintPath(scene, scene.path, lanes);
    this.marks(scene, top, bottom);
    surface.show(this.canvas, top, bottom);
  }

  private background({models, colours}: Scene, line: Line): void {
    const {lanes} = this;
    const end = lanes.x(models[line.timeline].tasks.step_s);
    lanes.surface.rect(lanes.x(0), lanes.px(line.top), end, lanes.px(bottomOf(line)), colours.idle);
  }

  private grid({view, colours}: Scene, top: number, bottom: number): void {
    const {lanes} = this;
    const step_s = tickStepOf(view);
    for (let tick = Math.ceil(view.start_s / step_s); tick * step_s <= view.end_s; ++tick) {
      const x = lanes.x(tick * step_s);
      lanes.surface.rect(x, top, x + lanes.px(1), bottom, colours.grid);
    }
  }

  private line({models, view}: Scene, line: Line): void {
    const {lanes} = this;
    const model = models[line.timeline];
    const row = model.rows[line.row];
    const top = lanes.px(line.top);
    const bottom = lanes.px(line.top + line.height);
    const labelled = line.height >= 12;
    lanes.font(line.height >= 16 ? 11 : 9);
    if (line.stream >= 0) {
      const {first, last} = row.streams[line.stream];
      lanes.tasks(model, first, last, top, bottom, true);
      return;
    }
    if (row.kernels && showsKernels(model, line, view)) {
      lanes.tasks(model, row.kernels.first, row.kernels.last, top, bottom, labelled);
    } else {
      lanes.blocks(row.blocks, top, bottom, labelled);
    }
    if (line.communication > 0) {
      lanes.pieces(model, row.communication, lanes.px(communicationTop(line)), lanes.px(bottomOf(line)));
    }
  }

  private marks({colours, layout, line, marked, twins, pointer_s}: Scene, top: number, bottom: number): void {
    const {lanes} = this;
    const {surface} = lanes;
    const selected = layout.lines[line];
    if (selected) surface.rect(0, lanes.px(selected.top), lanes.px(3), lanes.px(bottomOf(selected)), colours.accent);
    if (!Number.isNaN(pointer_s)) {
      const x = lanes.x(pointer_s);
      surface.rect(x, top, x + lanes.px(1), bottom, colours.quiet);
    }
    if (marked) this.outline(marked, 1.5, colours.ink);
    for (const twin of twins) if (twin.line >= 0) this.outline(twin, 1, colours.ink);
  }

  private outline({start_s, end_s, top, height}: Hit, thickness: number, colour: number): void {
    const {lanes} = this;
    const left = lanes.x(start_s);
    lanes.outline(left, Math.max(left + 2, lanes.x(end_s)), lanes.px(top), lanes.px(top + height), lanes.px(thickness), colour);
  }
}

function onScreen({top, bottom}: Scene, line: Line): boolean {
  return line.top < bottom && bottomOf(line) > top;
}
