// Pixels that are written here and handed to a canvas in one piece: tens of thousands of small rectangles a frame are several times
// faster than as many calls of a canvas. Lengths are device pixels; colours are 0xAABBGGRR, opaque unless said otherwise.

/** Text as coverage, 0 ... 255 by pixel. */
export interface Mask {
  width: number;
  height: number;
  coverage: Uint8Array;
}

export const clear = 0;

const wide_px = 24; // from where on a call of fill is worth it

export class Surface {
  width = 0;
  height = 0;
  private pixels = new Uint32Array(0);
  private image: ImageData | null = null;

  resize(width: number, height: number): void {
    if (this.image && this.width === width && this.height === height) return;
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  /** Fills [left, right) x [top, bottom). */
  rect(left: number, top: number, right: number, bottom: number, colour: number): void {
    const {pixels, width} = this;
    const first = left > 0 ? left : 0;
    const end = right < width ? right : width;
    const lastRow = bottom < this.height ? bottom : this.height;
    const wide = end - first > wide_px;
    for (let y = top > 0 ? top : 0; y < lastRow; ++y) {
      if (wide) pixels.fill(colour, y * width + first, y * width + end);
      else for (let at = y * width + first, stop = y * width + end; at < stop; ++at) pixels[at] = colour;
    }
  }

  /** Mixes in `colour`: `alpha` 256 is all of it. */
  blend(left: number, top: number, right: number, bottom: number, colour: number, alpha: number): void {
    const {pixels, width} = this;
    const first = left > 0 ? left : 0;
    const end = right < width ? right : width;
    const lastRow = bottom < this.height ? bottom : this.height;
    for (let y = top > 0 ? top : 0; y < lastRow; ++y) {
      for (let at = y * width + first, stop = y * width + end; at < stop; ++at) pixels[at] = mix(pixels[at], colour, alpha);
    }
  }

  text({width, height, coverage}: Mask, left: number, top: number, colour: number): void {
    for (let y = Math.max(0, -top); y < height && top + y < this.height; ++y) {
      for (let x = Math.max(0, -left); x < width && left + x < this.width; ++x) {
        const covered = coverage[y * width + x];
        if (covered === 0) continue;
        const at = (top + y) * this.width + left + x;
        this.pixels[at] = mix(this.pixels[at], colour, covered + 1);
      }
    }
  }

  /** Rows [top, bottom) onto the canvas, in place of what it had there. */
  show(canvas: CanvasRenderingContext2D, top: number, bottom: number): void {
    if (this.image) canvas.putImageData(this.image, 0, 0, 0, top, this.width, bottom - top);
  }
}

/** Two channels at a time. */
function mix(below: number, above: number, alpha: number): number {
  const rest = 256 - alpha;
  const redBlue = ((below & 0xff00ff) * rest + (above & 0xff00ff) * alpha) / 256;
  const green = ((below & 0x00ff00) * rest + (above & 0x00ff00) * alpha) / 256;
  return (0xff000000 | (redBlue & 0xff00ff) | (green & 0x00ff00)) >>> 0;
}
