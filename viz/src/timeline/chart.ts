// A timeline on the page: its state, and a frame whenever that changes.

import {currentTheme, onThemeChange} from "../palette";
import {seconds} from "../format";
import {axisHeight, paintAxis} from "./axis";
import {coloursOf, css} from "./colours";
import {describe} from "./describe";
import {type Elements, elementsFor} from "./elements";
import {Drawing} from "./draw";
import {FrameRecorder} from "./frames";
import {type Hit, hitAt, hitOn, neighbour} from "./hit";
import {type Actions, attachInput} from "./input";
import {fillLabels} from "./labels";
import {keyOf, layoutOf, type Line} from "./layout";
import {legendOf} from "./legend";
import type {Model} from "./model";
import {attachOverview, paintOverview, placeWindow} from "./overview";
import type {Path} from "./path";
import type {Scene} from "./scene";
import {Tooltip} from "./tooltip";
import {twinOf} from "./twin";
import {fitted, pan, show, timeOf, type View, xOf, zoom} from "./view";

const overviewHeight = 44;
const largestCanvas_px = 16384; // a side, of what browsers agree on
const paperWidth_px = 900; // of the rows; what paper has beyond that, it stretches

export class Chart {
  readonly frames = new FrameRecorder();
  readonly view: View;
  private readonly elements: Elements;
  private readonly drawing: Drawing;
  private readonly tooltip: Tooltip;
  private readonly expanded = new Set<string>();
  private readonly scene: Scene;
  private frameRequested = false;
  private overviewIsOld = true;
  private printing = false;
  private beforePrinting = {start_s: 0, end_s: 0};
  private pointer: {x: number; y: number} | null = null;

  constructor(
    container: HTMLElement,
    readonly models: readonly Model[],
    private readonly path: Path | null,
  ) {
    this.elements = elementsFor(overviewHeight, axisHeight);
    const {elements} = this;
    this.view = fitted(Math.max(1e-9, ...models.map(model => model.tasks.step_s)), 1);
    this.scene = {
      view: this.view, models, layout: layoutOf(models, this.expanded), colours: coloursOf(currentTheme()),
      marked: null, twins: [], line: -1, pointer_s: NaN, path: null, top: 0, bottom: 0,
    };
    elements.bar.prepend(legendOf(models));
    elements.buttons.path.hidden = path === null;
    elements.root.classList.toggle("timeline-pair", models.length > 1);
    container.replaceChildren(elements.root);
    this.drawing = new Drawing(elements.rows);
    this.tooltip = new Tooltip(elements.tooltip, elements.root);
    this.useLayout();
    this.useColours();
    this.attach();
    this.resize();
  }

  /** What is under a point of the rows, in CSS pixels from their left top corner. */
  at(x: number, y: number): Hit | null {
    return hitAt(this.models, this.scene.layout, this.view, x, y);
  }

  /** The same task or pass in the other timelines. */
  twinsOf(hit: Hit): Hit[] {
    return this.models.map((_, timeline) => twinOf(this.models, this.scene.layout, hit, timeline)).filter(twin => twin !== null);
  }

  lines(): readonly Line[] {
    return this.scene.layout.lines;
  }

  show(start_s: number, end_s: number): void {
    show(this.view, start_s, end_s);
    this.request();
  }

  toggleRow(line: Line): void {
    const key = keyOf(line.timeline, line.row);
    if (!this.expanded.delete(key)) this.expanded.add(key);
    const selected = this.scene.layout.lines[this.scene.line];
    this.scene.layout = layoutOf(this.models, this.expanded);
    this.scene.line = this.scene.layout.lines.findIndex(
      ({timeline, row}) => selected && timeline === selected.timeline && row === selected.row);
    this.mark(null);
    this.useLayout();
    this.resize();
  }

  togglePath(): void {
    if (!this.path) return;
    this.scene.path = this.scene.path ? null : this.path;
    this.elements.buttons.path.setAttribute("aria-pressed", String(this.scene.path !== null));
    this.request();
  }

  private attach(): void {
    const {elements} = this;
    attachInput(elements.rows, this.actions());
    attachOverview(elements.strip, elements.window, this.view, () => this.request());
    elements.buttons.path.addEventListener("click", () => this.togglePath());
    elements.buttons.nearer.addEventListener("click", () => this.zoomBy(1.5, this.view.width / 2));
    elements.buttons.further.addEventListener("click", () => this.zoomBy(1 / 1.5, this.view.width / 2));
    elements.buttons.all.addEventListener("click", () => this.fit());
    new ResizeObserver(() => this.resize()).observe(elements.rows);
    window.addEventListener("resize", () => this.resize());
    window.addEventListener("scroll", () => this.request(), {passive: true, capture: true});
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    onThemeChange(() => {
      this.useColours();
      this.request();
    });
  }

  private actions(): Actions {
    return {
      width: () => this.view.width,
      pan: pixels => {
        pan(this.view, pixels);
        this.request();
      },
      zoom: (factor, x) => this.zoomBy(factor, x),
      zoomByKey: factor => this.zoomBy(factor, this.middleForKeys()),
      fit: () => this.fit(),
      moveLine: by => this.moveLine(by),
      step: by => this.step(by),
      expandLine: () => {
        const line = this.scene.layout.lines[this.scene.line];
        if (line) this.toggleRow(line);
      },
      togglePath: () => this.togglePath(),
      point: (x, y) => {
        this.pointer = {x, y};
        this.request();
      },
      leave: () => {
        this.pointer = null;
        this.mark(null);
      },
      press: (x, y) => {
        const hit = this.at(x, y);
        if (hit) this.scene.line = hit.line;
        this.request();
      },
      zoomToItem: (x, y) => {
        const hit = this.at(x, y);
        if (!hit) return;
        const margin_s = 0.1 * (hit.end_s - hit.start_s);
        this.show(hit.start_s - margin_s, hit.end_s + margin_s);
      },
    };
  }

  private zoomBy(factor: number, x: number): boolean {
    const {start_s, end_s} = this.view;
    zoom(this.view, factor, x);
    this.request();
    return start_s !== this.view.start_s || end_s !== this.view.end_s;
  }

  private fit(): void {
    this.show(0, this.view.total_s);
  }

  private middleForKeys(): number {
    const {marked} = this.scene;
    const x = this.pointer?.x ?? (marked ? xOf(this.view, (marked.start_s + marked.end_s) / 2) : this.view.width / 2);
    return x >= 0 && x <= this.view.width ? x : this.view.width / 2;
  }

  private moveLine(by: -1 | 1): void {
    const {layout, marked, line} = this.scene;
    const next = line < 0 ? (by > 0 ? 0 : layout.lines.length - 1) : Math.min(Math.max(0, line + by), layout.lines.length - 1);
    if (!layout.lines[next]) return;
    this.scene.line = next;
    const time_s = marked ? (marked.start_s + marked.end_s) / 2 : (this.view.start_s + this.view.end_s) / 2;
    this.pointer = null;
    this.mark(hitOn(this.models, layout, this.view, next, time_s, false, Infinity));
  }

  private step(by: -1 | 1): void {
    const {marked, layout} = this.scene;
    if (!marked) return this.scene.line < 0 ? this.moveLine(1) : undefined;
    const next = neighbour(this.models, layout, marked, by);
    if (!next) return;
    const span_s = this.view.end_s - this.view.start_s;
    if (next.start_s < this.view.start_s || next.end_s > this.view.end_s) {
      const middle_s = next.end_s - next.start_s > span_s ? next.start_s + span_s / 2 : (next.start_s + next.end_s) / 2;
      show(this.view, middle_s - span_s / 2, middle_s + span_s / 2);
    }
    this.pointer = null;
    this.mark(next);
  }

  private mark(hit: Hit | null): void {
    this.scene.marked = hit;
    this.request();
  }

  private request(): void {
    if (this.frameRequested) return;
    this.frameRequested = true;
    requestAnimationFrame(() => {
      this.frameRequested = false;
      this.paint();
    });
  }

  private useColours(): void {
    this.scene.colours = coloursOf(currentTheme());
    this.elements.root.style.setProperty("--timeline-idle", css(this.scene.colours.idle));
    this.overviewIsOld = true;
  }

  /** A name that has the focus keeps it. */
  private useLayout(): void {
    const {labels} = this.elements;
    const names = () => [...labels.querySelectorAll<HTMLElement>(".timeline-row")];
    const focused = names().findIndex(name => name === document.activeElement);
    fillLabels(labels, this.scene.layout, this.models, line => this.toggleRow(line));
    names()[focused]?.focus();
    this.elements.rows.style.height = `${this.scene.layout.height}px`;
  }

  private ratio(): number {
    return Math.min(window.devicePixelRatio || 1, largestCanvas_px / Math.max(this.scene.layout.height, this.view.width));
  }

  private resize(): void {
    const {rows, axis, overview} = this.elements;
    this.view.width = this.printing ? paperWidth_px : Math.max(1, rows.clientWidth);
    const ratio = this.ratio();
    const width = Math.round(this.view.width * ratio);
    const size = (canvas: HTMLCanvasElement, height: number) => {
      if (canvas.width === width && canvas.height === Math.round(height * ratio)) return;
      canvas.width = width;
      canvas.height = Math.round(height * ratio);
    };
    size(rows, this.scene.layout.height);
    size(axis, axisHeight);
    size(overview, overviewHeight);
    this.overviewIsOld = true;
    this.paint();
  }

  private paint(): void {
    const began_ms = performance.now();
    const {scene, elements, view, pointer} = this;
    const ratio = this.ratio();
    const {top} = elements.rows.getBoundingClientRect();
    scene.top = this.printing ? 0 : Math.max(0, -top);
    scene.bottom = this.printing ? scene.layout.height : Math.min(scene.layout.height, window.innerHeight - top);
    if (pointer) scene.marked = this.at(pointer.x, pointer.y);
    scene.twins = scene.marked ? this.twinsOf(scene.marked) : [];
    scene.pointer_s = pointer ? timeOf(view, pointer.x) : NaN;
    if (scene.bottom > scene.top) this.drawing.frame(scene, ratio);
    paintAxis(elements.axis, view, scene.pointer_s, ratio, scene.colours);
    if (this.overviewIsOld) paintOverview(elements.overview, this.models, view, ratio, scene.colours);
    this.overviewIsOld = false;
    placeWindow(elements.window, view);
    elements.range.textContent = `${seconds(view.end_s - view.start_s)} in view`;
    this.placeTooltip();
    this.frames.drew(performance.now() - began_ms);
  }

  private placeTooltip(): void {
    const {marked} = this.scene;
    if (!marked || this.printing) return this.tooltip.hide();
    const {left, top} = this.elements.rows.getBoundingClientRect();
    const x = this.pointer?.x ?? Math.min(Math.max(0, xOf(this.view, marked.start_s)), this.view.width);
    const y = this.pointer?.y ?? marked.top + marked.height;
    this.tooltip.show(describe(this.models, marked, this.scene.twins), left + x, top + y);
  }

  /** On paper all of the step, at once: frames are not to be had while the browser prints. */
  private print(printing: boolean): void {
    if (printing && !this.printing) this.beforePrinting = {start_s: this.view.start_s, end_s: this.view.end_s};
    this.printing = printing;
    if (printing) show(this.view, 0, this.view.total_s);
    else show(this.view, this.beforePrinting.start_s, this.beforePrinting.end_s);
    this.useColours();
    this.resize();
  }
}
