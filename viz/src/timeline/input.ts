// Pointer, wheel, touch and keys on the rows, as actions. A plain wheel scrolls the page unless the rows have the focus.

/** Coordinates are CSS pixels from the rows' left top corner. */
export interface Actions {
  pan(pixels: number): void;
  zoom(factor: number, x: number): boolean; // false: nothing changed
  zoomByKey(factor: number): void;
  fit(): void;
  moveLine(by: -1 | 1): void;
  step(by: -1 | 1): void;
  expandLine(): void;
  togglePath(): void;
  point(x: number, y: number): void;
  leave(): void;
  press(x: number, y: number): void;
  zoomToItem(x: number, y: number): void;
  width(): number;
}

const wheelZoom = 0.0015; // per pixel of scrolling
const pinchZoom = 0.01; // trackpads send pinches as a wheel with ctrl held, in small steps
const lineHeight_px = 16; // of wheels that count in lines
const keyZoom = 1.5;
const keyPan = 0.12; // of what is in view
const dragFrom_px = 3;

export function attachInput(rows: HTMLElement, actions: Actions): void {
  attachPointer(rows, actions);
  attachWheel(rows, actions);
  attachKeys(rows, actions);
}

function attachWheel(rows: HTMLElement, actions: Actions): void {
  const onWheel = (event: WheelEvent) => {
    const focused = document.activeElement === rows;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? lineHeight_px : 1;
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (!event.ctrlKey && Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault(); // else browsers go back in history
      actions.pan(sideways * unit);
    } else if (event.ctrlKey || focused) {
      const pinched = event.ctrlKey && Math.abs(event.deltaY) < 50;
      const factor = Math.exp(-event.deltaY * unit * (pinched ? pinchZoom : wheelZoom));
      const {left} = rows.getBoundingClientRect();
      if (actions.zoom(factor, event.clientX - left) || event.ctrlKey) event.preventDefault();
    }
  };
  rows.addEventListener("wheel", onWheel, {passive: false});
}

function attachPointer(rows: HTMLElement, actions: Actions): void {
  const pointers = new Map<number, {x: number; y: number}>();
  let dragged = 0;
  const at = (event: MouseEvent) => {
    const {left, top} = rows.getBoundingClientRect();
    return {x: event.clientX - left, y: event.clientY - top};
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return {middle: (a.x + b.x) / 2, width: Math.max(10, Math.abs(a.x - b.x))};
  };

  rows.addEventListener("pointerdown", event => {
    if (event.button !== 0 || pointers.size === 2) return;
    rows.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    dragged = 0;
  });
  rows.addEventListener("pointermove", event => {
    const now = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) return actions.point(now.x, now.y);
    const pinch = pointers.size === 2 ? spread() : null;
    pointers.set(event.pointerId, now);
    dragged += Math.abs(now.x - before.x);
    if (pinch) {
      const {middle, width} = spread();
      actions.pan(pinch.middle - middle);
      actions.zoom(width / pinch.width, middle);
    } else if (dragged >= dragFrom_px) {
      actions.leave();
      rows.classList.add("timeline-dragging");
      actions.pan(before.x - now.x);
    }
  });
  const release = (event: PointerEvent) => {
    if (!pointers.delete(event.pointerId)) return;
    rows.classList.remove("timeline-dragging");
    const {x, y} = at(event);
    if (event.type === "pointerup" && dragged < dragFrom_px) actions.press(x, y);
  };
  rows.addEventListener("pointerup", release);
  rows.addEventListener("pointercancel", release);
  rows.addEventListener("pointerleave", () => actions.leave());
  rows.addEventListener("dblclick", event => {
    const {x, y} = at(event);
    actions.zoomToItem(x, y);
  });
}

function attachKeys(rows: HTMLElement, actions: Actions): void {
  const panBy = (share: number) => actions.pan(share * actions.width());
  const keys: Record<string, () => void> = {
    ArrowLeft: () => panBy(-keyPan),
    ArrowRight: () => panBy(keyPan),
    PageUp: () => panBy(-0.9),
    PageDown: () => panBy(0.9),
    Home: () => panBy(-Infinity),
    End: () => panBy(Infinity),
    "+": () => actions.zoomByKey(keyZoom),
    "=": () => actions.zoomByKey(keyZoom),
    "-": () => actions.zoomByKey(1 / keyZoom),
    "0": () => actions.fit(),
    ArrowUp: () => actions.moveLine(-1),
    ArrowDown: () => actions.moveLine(1),
    "shift ArrowLeft": () => actions.step(-1),
    "shift ArrowRight": () => actions.step(1),
    Enter: () => actions.expandLine(),
    " ": () => actions.expandLine(),
    c: () => actions.togglePath(),
    Escape: () => rows.blur(),
  };
  rows.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keys[`${event.shiftKey && event.key.startsWith("Arrow") ? "shift " : ""}${event.key}`];
    if (!action) return;
    event.preventDefault();
    action();
  });
  rows.addEventListener("blur", () => actions.leave());
}
