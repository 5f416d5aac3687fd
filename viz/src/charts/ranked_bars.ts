// Bars with a name to the left and words to the right, in the order given; to both sides of zero if some are negative.
import {h, type Attributes} from "../dom";
import {cssColour, type ColourName} from "../palette";
import {tipOn, type Tip} from "../tip";

export interface RankedBar {
  name: string;
  value: number;
  text: string; // the value for a person
  aside?: string; // after it, quieter
  colour: ColourName;
  hatched?: boolean;
  data?: Attributes; // on the mark
  tip?: Tip;
}

/** `scale`: what a full bar stands for; by default the largest value. Bars beyond `limit` wait behind a button. */
export function rankedBars(
  id: string,
  label: string,
  bars: readonly RankedBar[],
  options: {scale?: number; limit?: number} = {}
): HTMLElement {
  const most = Math.max(0, ...bars.map(({value}) => value));
  const least = Math.max(0, ...bars.map(({value}) => -value));
  const scale = options.scale ?? most + least;
  const zero = scale > 0 ? least / scale : 0;
  const all = options.limit === undefined || bars.length <= options.limit + 2;
  const limit = all ? bars.length : (options.limit ?? 0);

  const rows = bars.map((bar, at) => {
    const size = scale > 0 ? Math.abs(bar.value) / scale : 0;
    const from = bar.value < 0 ? zero - size : zero;
    const mark = h("div", {
      class: `mark${bar.hatched ? " hatched" : ""}`,
      "data-name": bar.name,
      "data-value": bar.value,
      ...bar.data,
      style: `left:${from * 100}%;width:${size * 100}%;--colour:${cssColour(bar.colour)}`,
    });
    const row = h(
      "li",
      {class: at >= limit ? "beyond" : null},
      h("span", {class: "bar-name", title: bar.name}, bar.name),
      h("span", {class: "bar-track"}, zero > 0 ? h("i", {style: `left:${zero * 100}%`}) : null, mark),
      h("span", {class: "bar-value"}, bar.text),
      h("small", {}, bar.aside ?? "")
    );
    const tip = bar.tip ?? {title: bar.name, note: bar.aside ? `${bar.text}, ${bar.aside}` : bar.text};
    tipOn(row, tip);
    tipOn(mark, tip);
    return row;
  });
  const list = h(
    "ol",
    {
      class: "chart ranked",
      "data-chart": id,
      "data-scale": scale,
      "aria-label": label,
      tabindex: 0,
    },
    ...rows
  );
  if (all) return list;

  const more = h("button", {type: "button", class: "more"}, `Show all ${bars.length}`);
  more.addEventListener("click", () => {
    for (const row of rows) row.classList.remove("beyond");
    more.remove();
  });
  return h("div", {}, list, more);
}
