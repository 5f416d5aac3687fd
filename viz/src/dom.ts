// Elements from a tag, attributes and children. Text goes in as text, never as markup.

export type Child = Node | string | null | undefined | false;
export type Attributes = Record<string, string | number | boolean | null | undefined>;

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  return filled(document.createElement(tag), attributes, children);
}

export function s<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Null, undefined and false leave an attribute out; true sets it empty. Numbers keep all their digits. */
function filled<Kind extends Element>(element: Kind, attributes: Attributes, children: readonly Child[]): Kind {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => child instanceof Node || typeof child === "string"));
  return element;
}

let measuring: CanvasRenderingContext2D | null = null;
let family = ""; // of the page, asked once

/** In pixels, in the page's font. */
export function textWidth(text: string, size = 12, weight = 400): number {
  measuring ??= document.createElement("canvas").getContext("2d");
  if (!measuring) return text.length * size * 0.6;
  family ||= getComputedStyle(document.body).fontFamily;
  measuring.font = `${weight} ${size}px ${family}`;
  return measuring.measureText(text).width;
}

/** Cut to a width, with an ellipsis. */
export function shortened(text: string, width: number, size = 12): string {
  if (textWidth(text, size) <= width) return text;
  let length = text.length;
  while (length > 1 && textWidth(`${text.slice(0, length)}…`, size) > width) --length;
  return `${text.slice(0, length).trimEnd()}…`;
}
