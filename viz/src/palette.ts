// Every colour of the page. Phases are Okabe and Ito's; the axes' were searched for so that all eleven can be told apart with
// protanopia, deuteranopia and tritanopia, too (tests/palette_test.mjs). Charts use the CSS variables, which follow the theme by
// themselves; canvases ask `colour` and draw again on `onThemeChange`.
import type {Axis, Phase} from "./report";

export type Theme = "light" | "dark";

export const phases: readonly Phase[] = ["forward", "backward-input", "backward-weight", "recompute", "optimizer"];
export const axes: readonly Axis[] = ["tp", "cp", "ep", "pp", "dp"];

const table = {
  // what a task is; communication is hatched where it stands beside kernels
  "forward": ["#0072b2", "#0072b2"],
  "backward-input": ["#e69f00", "#e69f00"],
  "backward-weight": ["#009e73", "#009e73"],
  "recompute": ["#cc79a7", "#cc79a7"],
  "optimizer": ["#1c1e22", "#c2c6cb"],
  tp: ["#dc5800", "#eb4600"],
  cp: ["#f7cc09", "#f9f25d"],
  ep: ["#91234a", "#a13270"],
  pp: ["#5ec6ef", "#45b2f4"],
  dp: ["#4d2779", "#9961f9"],
  none: ["#8a9099", "#8a9099"], // communication of no axis
  compute: ["#6d8ba1", "#7596a6"], // all kernels as one
  bubble: ["#dce0e4", "#2e3339"], // waiting, of the critical path, too

  // memory: what stays for the step in greys, what comes and goes in colour
  parameters: ["#5b6570", "#8b96a3"],
  gradients: ["#8b96a3", "#67717d"],
  "optimizer state": ["#b9c2cc", "#49525c"],
  activations: ["#2a7f9e", "#3f9cbf"],
  buffers: ["#c9a227", "#d9b63a"],

  // signs, which never stand without a word or a symbol
  good: ["#00735c", "#3fc79a"],
  bad: ["#b3261e", "#ff8f7d"],
  gained: ["#0072b2", "#4aa8e0"], // faster, less
  lost: ["#c2500a", "#f08a3c"], // slower, more
  heat_low: ["#f1f3f5", "#1f2429"],
  heat_middle: ["#7fb2c9", "#2f6f8e"],
  heat_high: ["#08345e", "#f9f25d"],

  // the page
  page: ["#ffffff", "#14171a"],
  panel: ["#f6f7f9", "#1c2025"],
  ink: ["#1b1e22", "#e6e9ec"],
  quiet: ["#5a626c", "#a2abb5"], // second to ink, and still 4.5 : 1
  rule: ["#d7dbe0", "#363c44"],
  grid: ["#e8ebee", "#2a2f36"],
  accent: ["#005a9c", "#6cb8ef"], // links, focus
} satisfies Record<string, [light: string, dark: string]>;

export type ColourName = keyof typeof table;

/** The value for a canvas. */
export function colour(name: ColourName, theme: Theme = currentTheme()): string {
  return table[name][theme === "light" ? 0 : 1];
}

/** The value for an attribute or a style. */
export function cssColour(name: ColourName): string {
  return `var(${variable(name)})`;
}

/** Which text can be read on it, of white and black: by relative luminance, WCAG 2. */
export function inkOn(name: ColourName, theme: Theme = currentTheme()): string {
  const [r, g, b] = [1, 3, 5].map(at => {
    const c = parseInt(colour(name, theme).slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? "#ffffff" : "#000000";
}

export function cssInkOn(name: ColourName): string {
  return `var(${variable(`on ${name}`)})`;
}

/** Of a kind as the critical path and the tables name it: "gemm forward", "gemm", "all_reduce (tp)", "wait". */
export function colourOfKind(kind: string): ColourName {
  const axis = /\((\w+)\)/.exec(kind)?.[1];
  if (axis !== undefined) return axes.find(one => one === axis) ?? "none";
  return phases.find(phase => kind.endsWith(phase)) ?? (kind === "wait" ? "bubble" : "compute");
}

let chosen: Theme | null = null; // by the reader; else the system's
let printing = false;
const listeners: (() => void)[] = [];
const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

/** What shows now. Paper is light. */
export function currentTheme(): Theme {
  return printing ? "light" : chosen ?? (systemIsDark.matches ? "dark" : "light");
}

export function toggleTheme(): void {
  chosen = currentTheme() === "light" ? "dark" : "light";
  changed();
}

/** Calls when the colours have changed. */
export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

/** Writes the variables and the page's theme, and follows the system and the printer from then on. */
export function applyPalette(): void {
  const variables = (theme: Theme) =>
    (Object.keys(table) as ColourName[]).map(name =>
      `${variable(name)}:${colour(name, theme)};${variable(`on ${name}`)}:${inkOn(name, theme)};`).join("");
  const style = document.createElement("style");
  style.textContent = `:root{color-scheme:light;${variables("light")}}:root[data-theme=dark]{color-scheme:dark;${variables("dark")}}`;
  document.head.append(style);
  systemIsDark.addEventListener("change", changed);
  for (const [event, value] of [["beforeprint", true], ["afterprint", false]] as const) {
    window.addEventListener(event, () => {
      printing = value;
      changed();
    });
  }
  changed();
}

function changed(): void {
  document.documentElement.dataset.theme = currentTheme();
  for (const listener of listeners) listener();
}

function variable(name: string): string {
  return `--${name.replace(/[ _]/g, "-")}`;
}
