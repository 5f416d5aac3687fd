// Texts, each drawn once by the browser and kept as a mask.

import type {Mask} from "./surface";

export class Glyphs {
  private readonly bySize = new Map<number, Map<string, Mask>>();
  private readonly canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true})!;
  private masks = new Map<string, Mask>();
  private size = 0;

  /** Height of what follows, in device pixels. */
  use(size: number): void {
    if (this.size === size) return;
    this.size = size;
    let masks = this.bySize.get(size);
    if (!masks) this.bySize.set(size, (masks = new Map()));
    this.masks = masks;
  }

  of(text: string): Mask {
    let mask = this.masks.get(text);
    if (!mask) this.masks.set(text, (mask = this.draw(text)));
    return mask;
  }

  private draw(text: string): Mask {
    const {canvas, size} = this;
    const font = `${size}px system-ui, sans-serif`;
    canvas.font = font;
    const width = Math.max(1, Math.ceil(canvas.measureText(text).width));
    const height = Math.ceil(size * 1.4);
    canvas.canvas.width = width; // clears it, and forgets the font
    canvas.canvas.height = height;
    canvas.font = font;
    canvas.textBaseline = "middle";
    canvas.fillText(text, 0, height / 2);
    const {data} = canvas.getImageData(0, 0, width, height);
    return {width, height, coverage: Uint8Array.from({length: width * height}, (_, at) => data[4 * at + 3])};
  }
}
