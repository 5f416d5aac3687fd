// What the links do: tiers over time, and the busiest links with who is on them.
import {figure, legend} from "../charts/frame";
import {heatLegend, heatTop, meanOf, roundedUp, tierHeat} from "../charts/tier_heat";
import {h, s} from "../dom";
import {bytes, bytesPerSecond, integer, percent, roughPercent} from "../format";
import {nothing, section} from "../page";
import {axes, cssColour} from "../palette";
import type {LinkUse, OneLink} from "../report";
import {table} from "../table";
import {tipOn} from "../tip";
import {share} from "./kinds";

const shownOfTier = 4;

export function networkSection(use: LinkUse): HTMLElement[] {
  const used = use.tiers.some(({utilisation}) => utilisation.some(value => value > 0));
  if (!used) {
    return [section("network", "No links are used", nothing("tier-heat", "Nothing is sent between GPUs in this run."))];
  }
  const top = heatTop(use);
  return [
    section(
      "network",
      networkFinding(use),
      figure(
        {
          legend: heatLegend(top),
          caption: "Mean over all links of a tier. Bytes are spread evenly over the time of each transfer.",
        },
        tierHeat(use)
      )
    ),
    ...(use.links.length > 0 ? [linksSection(use)] : []),
  ];
}

function linksSection(use: LinkUse): HTMLElement {
  const step_s = (use.edges_s.at(-1) ?? 0) - (use.edges_s[0] ?? 0);
  const busy = (link: OneLink) => (step_s > 0 ? link.bytes / (link.capacity * step_s) : 0);
  const busiest = [...use.links].sort((a, b) => busy(b) - busy(a));
  const first = busiest[0] as OneLink;
  const ofEachTier = busiest.filter(link => busiest.filter(({tier}) => tier === link.tier).indexOf(link) < shownOfTier);
  const users = axes.filter(axis => use.links.some(link => link.users.some(user => user.axis === axis)));
  const top = roundedUp(Math.max(0, ...use.links.flatMap(({utilisation}) => utilisation)));
  return section(
    "links",
    `The busiest link, ${first.name}, is used to ${roughPercent(busy(first))}`,
    figure(
      {
        legend: legend(users.map(axis => ({label: axis, colour: axis}))),
        caption:
          "Used: the bytes of the step over what the link could carry in it. " +
          `The small charts go from 0 to ${percent(top)}. At first, the busiest ${shownOfTier} of each tier.`,
      },
      table<OneLink>(
        [
          {
            name: "link",
            text: true,
            value: link => link.name,
            show: link => h("span", {}, link.name, link.stands_for > 1 ? h("small", {}, ` ×${integer(link.stands_for)}`) : null),
          },
          {name: "tier", text: true, value: link => link.tier},
          {name: "capacity", value: link => link.capacity, show: link => bytesPerSecond(link.capacity)},
          {name: "carried", value: link => link.bytes, show: link => bytes(link.bytes, 3)},
          {name: "used", value: busy, show: link => share(busy(link), busy(link) / (busy(first) || 1))},
          {
            name: "over the step",
            value: link => Math.max(0, ...link.utilisation),
            show: link => sparkline(link, use.edges_s, top),
          },
          {name: "who", text: true, value: link => link.users[0]?.communicator ?? null, show: who},
        ],
        [...ofEachTier, ...busiest.filter(link => !ofEachTier.includes(link))],
        {
          id: "links",
          caption: "The busiest links",
          limit: ofEachTier.length,
          attributes: link => ({"data-link": link.name, "data-value": link.bytes}),
        }
      )
    )
  );
}

/** Utilisation over the step, from 0 to `top`. */
function sparkline(link: OneLink, edges: readonly number[], top: number): SVGSVGElement {
  const [width, height] = [130, 22];
  const [begin, end] = [edges[0] ?? 0, edges.at(-1) ?? 1];
  const x = (t: number) => ((t - begin) / (end - begin)) * width;
  const y = (value: number) => height - 1 - Math.min(1, value / top) * (height - 2);
  const steps = link.utilisation.map(
    (value, bin) => `L${x(edges[bin] ?? 0).toFixed(1)} ${y(value).toFixed(2)}H${x(edges[bin + 1] ?? 0).toFixed(1)}`
  );
  const svg = s(
    "svg",
    {class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true"},
    s("path", {
      class: "mark",
      d: `M0 ${height - 1}${steps.join("")}V${height - 1}Z`,
      "data-link": link.name,
      "data-bins": link.utilisation.length,
      "data-most": Math.max(0, ...link.utilisation),
    })
  );
  tipOn(svg, {
    title: link.name,
    lines: [
      ["at most", roughPercent(Math.max(0, ...link.utilisation))],
      ["in the mean", roughPercent(meanOf(link.utilisation, edges))],
    ],
  });
  return svg;
}

/** Bytes by communicator, as parts of a bar and the largest in words. */
function who(link: OneLink): HTMLElement {
  const bar = h(
    "span",
    {class: "users"},
    ...link.users.map(user => {
      const part = h("i", {
        class: "mark",
        "data-communicator": user.communicator,
        "data-axis": user.axis,
        "data-value": user.bytes,
        style: `flex-grow:${user.bytes / (link.bytes || 1)};background:${cssColour(user.axis)}`,
      });
      tipOn(part, {
        title: user.communicator,
        lines: [
          ["carried", bytes(user.bytes)],
          ["of the link's", roughPercent(user.bytes / link.bytes)],
        ],
      });
      return part;
    })
  );
  const most = link.users[0];
  return h(
    "span",
    {class: "who"},
    bar,
    most ? h("span", {}, most.communicator, link.users.length > 1 ? h("small", {}, ` +${link.users.length - 1}`) : null) : "–"
  );
}

function networkFinding(use: LinkUse): string {
  const tiers = use.tiers.map(tier => ({tier, mean: meanOf(tier.utilisation, use.edges_s)})).sort((a, b) => b.mean - a.mean);
  const [first, second] = tiers;
  if (!first) return "No links are used";
  const others = second && second.mean > 0 ? `, those of ${second.tier.tier} to ${roughPercent(second.mean)}` : "";
  const {tier, links} = first.tier;
  return `The ${integer(links)} links of ${tier} are used to ${roughPercent(first.mean)} in the mean${others}`;
}
