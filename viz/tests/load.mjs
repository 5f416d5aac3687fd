// The page's own modules, for tests outside of a browser.
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createServer } from 'vite'

const root = fileURLToPath(new URL('../src', import.meta.url))

/// load('format.ts'), load('palette.ts'), ...
export async function load(...files) {
  globalThis.window ??= { matchMedia: () => ({ matches: false, addEventListener() {} }), addEventListener() {} }
  const server = await createServer({
    root,
    configFile: false,
    logLevel: 'error',
    appType: 'custom',
    optimizeDeps: { noDiscovery: true },
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
  })
  try {
    return await Promise.all(files.map(file => server.ssrLoadModule(path.join(root, file))))
  } finally {
    await server.close()
  }
}
