import {createHash} from "node:crypto";
import type {Plugin} from "vite";

/** What the page may run and fetch. Styles may stand at elements, where charts put colours and widths. */
function policyOf(page: string, asks: string): string {
  const scripts = [...page.matchAll(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g)].map(match => match[1]!);
  const hashes = scripts.map(script => `'sha256-${createHash("sha256").update(script).digest("base64")}'`);
  return [
    "default-src 'none'",
    ...(asks === "'none'" ? [] : [`connect-src ${asks}`]),
    `script-src ${hashes.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

/**
 * States in the page's head that it runs its own script, known by its hash, and nothing else: no text of a result can become
 * a script, and nothing is fetched but from where the page `asks`. To be listed after the plugin that puts the script into the page.
 */
export function contentSecurity(asks: string): Plugin {
  return {
    name: "content-security",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
          const page = String(file.source), charset = '<meta charset="utf-8">';
          const policy = `<meta http-equiv="Content-Security-Policy" content="${policyOf(page, asks)}">`;
          file.source = page.replace(charset, () => `${charset}\n${policy}`);
        }
      },
    },
  };
}
