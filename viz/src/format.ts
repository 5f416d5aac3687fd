// Numbers as a person reads them. Prefixes are powers of 1000, as in the terminal's report: a GB is 1e9 bytes.

const dash = "–";
const minus = "−";
const space = "\u00a0"; // that does not break a line

type Unit = readonly [factor: number, name: string];
const timeUnits: readonly Unit[] = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];
const byteUnits: readonly Unit[] = [
  [1e15, "PB"],
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
  [1, "B"],
];

/** With a fixed number of digits that count: 7.207, 51.63, 362.3, 16384. */
export function number(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return dash;
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  const text = value.toFixed(Math.max(0, digits - 1 - magnitude));
  return signed(grouped(text));
}

export function integer(value: number): string {
  return signed(grouped(value.toFixed(0)));
}

/** 7.207 s, 362.3 ms, 14.24 µs. */
export function seconds(value: number, digits = 4): string {
  const [factor, unit] = unitOf(value, timeUnits);
  return withUnit(value / factor, unit, digits);
}

/** 41.58 GB. */
export function bytes(value: number, digits = 4): string {
  const [factor, unit] = unitOf(value, byteUnits);
  return withUnit(value / factor, unit, unit === "B" ? Math.max(digits, 3) : digits);
}

/** 450.0 GB/s. */
export function bytesPerSecond(value: number, digits = 3): string {
  return `${bytes(value, digits)}/s`;
}

/** 312.0 GFLOP. */
export function flops(value: number, digits = 4): string {
  const [factor, unit] = unitOf(value, [
    [1e18, "EFLOP"],
    [1e15, "PFLOP"],
    [1e12, "TFLOP"],
    [1e9, "GFLOP"],
    [1e6, "MFLOP"],
    [1, "FLOP"],
  ]);
  return withUnit(value / factor, unit, digits);
}

/** A part of one: 51.6 %. Very small parts keep a digit: 0.03 %. */
export function percent(part: number): string {
  if (!Number.isFinite(part)) return dash;
  const value = part * 100;
  const size = Math.abs(value);
  const decimals = size === 0 || size >= 0.1 ? 1 : size >= 0.01 ? 2 : 3;
  return size !== 0 && size < 0.0005 ? `< 0.001${space}%` : `${signed(value.toFixed(decimals))}${space}%`;
}

/** For a sentence: 15 %, 3 %, 0.4 %. */
export function roughPercent(part: number): string {
  const size = Math.abs(part);
  if (size !== 0 && size < 0.001) return `under 0.1${space}%`;
  return `${signed((part * 100).toFixed(size < 0.01 && size > 0 ? 1 : 0))}${space}%`;
}

/** A change with its sign: +3.1 %, −12 ms. */
export function change(value: number, format: (value: number) => string): string {
  const text = format(value);
  return value > 0 && !text.startsWith("<") ? `+${text}` : text;
}

/** Ticks of a time axis up to `span` share one unit: 0, 50 ms, 100 ms. */
export function secondsTicks(span: number): (tick: number) => string {
  return ticksIn(unitOf(span, timeUnits));
}

export function bytesTicks(span: number): (tick: number) => string {
  return ticksIn(unitOf(span, byteUnits));
}

/** "1 GPU", "16,384 GPUs". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${integer(count)} ${count === 1 ? one : many}`;
}

/** "a", "a and b", "a, b and c". */
export function listed(names: readonly string[]): string {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function ticksIn([factor, unit]: Unit): (tick: number) => string {
  return tick => (tick === 0 ? "0" : signed(`${grouped(String(Number((tick / factor).toPrecision(6))))}${space}${unit}`));
}

function unitOf(value: number, units: readonly Unit[]): Unit {
  const largest = units[0] as Unit;
  if (value === 0) return units.find(([factor]) => factor === 1) ?? largest;
  const rounded = Math.abs(value) * 1.00005; // 999.96 ms is 1 s
  return units.find(([factor]) => rounded >= factor) ?? (units.at(-1) as Unit);
}

function withUnit(value: number, unit: string, digits: number): string {
  return `${number(value, digits)}${space}${unit}`;
}

function grouped(text: string): string {
  const [whole = "", fraction] = text.split(".");
  const sign = whole.startsWith("-") ? "-" : "";
  const figures = sign ? whole.slice(1) : whole;
  const spaced = figures.replace(/\B(?=(\d{3})+$)/g, ",");
  return sign + spaced + (fraction === undefined ? "" : `.${fraction}`);
}

function signed(text: string): string {
  return text.replace(/^-/, minus);
}
