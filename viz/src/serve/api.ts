// What the page asks the server that it came from. Its address once held the token, which is kept for other tabs and reloads.
import type {DiffReport, Result, StepReport} from "../report";

export interface Scenario {
  name: string; // of its file
  text: string;
  changes: string[]; // laid over it: "parallelism.tp=4"
}

export interface Start {
  tandem: string;
  scenarios: string[];
  presets: Record<"models" | "clusters" | "gpus" | "frameworks", string[]>;
  first: {name: string; text: string};
}

export interface Choice {
  value: string;
  allowed: boolean;
  why_not?: string;
  also?: string[];
}

export interface Field {
  path: string;
  value: string;
  choices: Choice[];
}

export interface Form {
  dp_follows: boolean;
  dp: number;
  fields: Field[];
  refusals: {place: string; sentence: string}[];
  warnings: string[];
}

export interface Finding {
  severity: "error" | "warning" | "advice";
  rule: string;
  sentence: string;
  fix: string[] | null;
  cost_s?: number | null;
}

export interface Plan {
  plan: string;
  fields: Record<string, unknown>;
  step_time_s: number;
  memory: {peak_bytes: number; limit_bytes: number};
}

export interface Found {
  best: Plan[];
  best_is_proven: boolean;
  counts: {plans: number; simulated: number; too_slow: number; without_memory: number};
  run: {wall_s: number};
}

export interface SearchWords {
  doing: string;
  done: number;
  of: number;
  best?: Plan;
}

/** The kinds of jobs, with what they answer (studies/serve/job_kinds.h). */
export interface Answers {
  form: Form;
  step: Result;
  schedule: StepReport;
  report: {page: string};
  lint: {findings: Finding[]};
  scenario: {text: string};
  search: Found;
  diff: DiffReport;
  study: {text: string};
}

/** A sentence of the server, or of what lies between. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number // 0: the server did not answer
  ) {
    super(message);
  }
}

const keptToken = "tandem-token";

/** Remembers the token of the page's address and takes it out there, so that it is neither bookmarked nor shared. */
export function takeToken(): void {
  const words = new URLSearchParams(location.hash.slice(1));
  const token = words.get("token");
  if (token === null) return;
  localStorage.setItem(keptToken, token);
  words.delete("token");
  const rest = words.toString();
  history.replaceState(null, "", `${location.pathname}${rest ? `#${rest}` : ""}`);
}

async function ask(path: string, init: RequestInit = {}, headers: Record<string, string> = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {...init, headers: {...headers, "X-Tandem-Token": localStorage.getItem(keptToken) ?? ""}});
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal("tandem serve does not answer. It may have ended.", 0);
  }
  if (response.ok) return response;
  const said = (await response.json().catch(() => ({}))) as {failure?: string};
  throw new Refusal(said.failure ?? response.statusText, response.status);
}

export async function start(): Promise<Start> {
  return (await ask("/api/start")).json() as Promise<Start>;
}

export async function textOf(name: string): Promise<string> {
  const file = (await (await ask(`/api/file?name=${encodeURIComponent(name)}`)).json()) as {text: string};
  return file.text;
}

const pageName = Math.random().toString(36).slice(2);

/** Asks for what changes with every move of a slider. `turn`: of several that come at once, the newest is answered. */
export async function now<Kind extends keyof Answers>(kind: Kind, turn: string, body: unknown): Promise<Answers[Kind]> {
  const response = await ask(
    `/api/job/${kind}`,
    {method: "POST", body: JSON.stringify(body)},
    {"Content-Type": "application/json", "X-Tandem-Turn": `${pageName} ${kind} ${turn}`}
  );
  return response.json() as Promise<Answers[Kind]>;
}

/** Asks for what may take a while. Aborting the signal ends the work, too. */
export async function later<Kind extends keyof Answers>(
  kind: Kind,
  body: unknown,
  signal: AbortSignal,
  told: (words: SearchWords) => void = () => undefined
): Promise<Answers[Kind]> {
  const response = await ask(`/api/job/${kind}`, {method: "POST", body: JSON.stringify(body), signal});
  for await (const line of linesOf(response)) {
    const said = JSON.parse(line) as {progress?: SearchWords; answer?: Answers[Kind]; failure?: string};
    if (said.progress) told(said.progress);
    if (said.answer) return said.answer;
    if (said.failure !== undefined) throw new Refusal(said.failure, 500);
  }
  throw new Refusal("the answer broke off", 0);
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line) yield line;
  }
  if (rest) yield rest;
}
