import "./style/page.css";
import "./style/said_first.css";
import "./style/charts.css";
import "./style/tables.css";
import "./style/sections.css";
import "./style/screens.css";
import {hatchPatterns} from "./charts/frame";
import {h} from "./dom";
import {applyPalette} from "./palette";
import type {Report} from "./report";
import {show} from "./reports";
import {mountTips} from "./tip";

applyPalette();
document.body.append(hatchPatterns());
mountTips();
const report = JSON.parse(document.getElementById("report")?.textContent ?? "{}") as Partial<Report>;
if (report.kind === undefined)
  document.body.append(h("p", {class: "nothing"}, "This page holds no report: it is the empty one that Tandem fills."));
else show(report as Report);
