// A scenario in a link, and files to keep. The link holds the scenario behind its #, which browsers send to no server.
import type {Scenario} from "./api";

const most = 1_000_000; // characters of a scenario that is taken from a link

export async function linkTo(scenario: Scenario): Promise<string> {
  const packed = await through(new TextEncoder().encode(JSON.stringify(scenario)), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  const text = btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  return `${location.origin}${location.pathname}#scenario=${text}`;
}

/** The scenario of this page's address; null where it has none. Throws where it cannot be read. */
export async function scenarioOfLink(): Promise<Scenario | null> {
  const text = new URLSearchParams(location.hash.slice(1)).get("scenario");
  if (text === null) return null;
  history.replaceState(null, "", location.pathname);
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(binary, character => character.charCodeAt(0));
  const json = new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
  const {name, text: yaml, changes} = JSON.parse(json) as Scenario;
  const isScenario =
    typeof name === "string" &&
    typeof yaml === "string" &&
    Array.isArray(changes) &&
    changes.every(change => typeof change === "string" && change.includes("="));
  if (!isScenario) throw new Error("the link holds no scenario");
  return {name, text: yaml, changes};
}

export function save(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], {type}));
  const link = document.createElement("a");
  [link.href, link.download] = [url, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const reader = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, BufferSource>).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const {value, done} = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) throw new Error("the link holds too much");
    parts.push(value);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
