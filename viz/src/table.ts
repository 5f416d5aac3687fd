// A table that sorts by a click on a column's head, or by Enter there.
import {h, type Attributes, type Child} from "./dom";

export interface Column<Row> {
  name: string;
  /** What it sorts by; null comes last, whatever the direction. */
  value: (row: Row) => number | string | null;
  show?: (row: Row) => Child;
  text?: boolean; // aligned left, sorted up first
  title?: string; // said at the head
}

export interface TableOptions<Row> {
  id: string;
  caption: string; // for screen readers
  attributes?: (row: Row) => Attributes;
  limit?: number; // rows shown at first
}

export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], options: TableOptions<Row>): HTMLElement {
  const body = h("tbody");
  const heads = columns.map(column =>
    h(
      "th",
      {scope: "col", class: column.text ? "text" : null},
      h("button", {type: "button", title: column.title ?? null}, column.name)
    )
  );
  const lines = rows.map(row => ({
    row,
    line: h(
      "tr",
      options.attributes?.(row) ?? {},
      ...columns.map(column =>
        h("td", {class: column.text ? "text" : null, "data-value": column.value(row)}, shownIn(column, row))
      )
    ),
  }));
  let all = options.limit === undefined || rows.length <= options.limit + 2;

  function fill(order: readonly {line: HTMLElement}[]): void {
    body.replaceChildren(...order.map(({line}) => line));
    order.forEach(({line}, at) => line.classList.toggle("beyond", !all && at >= (options.limit ?? 0)));
  }

  heads.forEach((head, at) =>
    head.firstElementChild?.addEventListener("click", () => {
      const column = columns[at] as Column<Row>;
      const first = column.text ? "ascending" : "descending";
      const second = column.text ? "descending" : "ascending";
      const direction = head.getAttribute("aria-sort") === first ? second : first;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction);
      fill([...lines].sort((a, b) => compared(column.value(a.row), column.value(b.row), direction === "ascending" ? 1 : -1)));
    })
  );

  fill(lines);
  const element = h(
    "table",
    {"data-table": options.id, "aria-label": options.caption},
    h("thead", {}, h("tr", {}, ...heads)),
    body
  );
  const frame = h("div", {class: "table"}, element);
  if (!all) {
    const more = h("button", {type: "button", class: "more"}, `Show all ${rows.length}`);
    more.addEventListener("click", () => {
      all = true;
      for (const {line} of lines) line.classList.remove("beyond");
      more.remove();
    });
    frame.append(more);
  }
  return frame;
}

/** Behind a click: the numbers of a chart. */
export function numbers(content: HTMLElement, summary = "Numbers"): HTMLElement {
  return h("details", {class: "numbers"}, h("summary", {}, summary), content);
}

function shownIn<Row>(column: Column<Row>, row: Row): Child {
  if (column.show) return column.show(row);
  const value = column.value(row);
  return value === null ? "–" : String(value);
}

function compared(a: number | string | null, b: number | string | null, sign: 1 | -1): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", {numeric: true});
}
