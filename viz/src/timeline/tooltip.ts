// The box beside what the pointer or the keyboard is on.

import {h} from "../dom";
import type {Description} from "./describe";

const distance_px = 14;

export class Tooltip {
  private shown: Description | null = null;

  constructor(
    readonly element: HTMLElement,
    private readonly within: HTMLElement,
  ) {
    element.hidden = true;
  }

  /** Beside a point of the window. The same description again only moves it. */
  show(description: Description, clientX: number, clientY: number): void {
    if (!this.shown || JSON.stringify(this.shown) !== JSON.stringify(description)) this.fill(description);
    this.element.hidden = false;
    const {width, height} = this.element.getBoundingClientRect();
    const frame = this.within.getBoundingClientRect();
    const fitsRight = clientX + distance_px + width <= window.innerWidth - 4;
    const left = fitsRight ? clientX + distance_px : Math.max(4, clientX - distance_px - width);
    const fitsBelow = clientY + distance_px + height <= window.innerHeight - 4;
    const top = fitsBelow ? clientY + distance_px : Math.max(4, clientY - distance_px - height);
    this.element.style.transform = `translate(${Math.round(left - frame.left)}px, ${Math.round(top - frame.top)}px)`;
  }

  hide(): void {
    this.element.hidden = true;
  }

  private fill(description: Description): void {
    this.shown = description;
    const {title, subtitle, facts, place} = description;
    this.element.replaceChildren(
      h("strong", {}, title),
      h("span", {}, subtitle),
      h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("small", {}, place));
  }
}
