import { createReadStream, statSync } from 'node:fs'
import { extname, join, normalize, sep } from 'node:path'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A page of the console, which links elsewhere may lead to. */
    isPage?: boolean
  }
}

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** Only our own files and address; no inline scripts, no framing. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

const noConsole = `<!doctype html><meta charset="utf-8"><title>Firebreak</title>
<h1>Firebreak hub</h1><p>The hub is running, but its console is not built. Build it with <code>npm run build</code>, or use the
API: <a href="/v1/overview">/v1/overview</a>, <a href="/openapi.json">/openapi.json</a>.`

/**
 * Serves the built console from a folder, compressed if the build put a `.gz` next to a file; any other path without an
 * extension is a page of the console too.
 */
export function serveConsole(app: FastifyInstance, folder: string | undefined): void {
  app.get('/*', { config: { isPage: true } }, async (request, reply) => {
    const wanted = decodeURIComponent(request.url.split('?')[0]!)
    const file = folder === undefined ? undefined : fileOf(folder, wanted)
    if (file !== undefined) {
      const isHashed = wanted.startsWith('/assets/')
      reply.header('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
      reply.type(types[extname(file)] ?? 'application/octet-stream')
      if (!isFile(`${file}.gz`)) return reply.send(createReadStream(file))
      reply.header('vary', 'accept-encoding')
      if (!takesGzip(request.headers['accept-encoding'])) return reply.send(createReadStream(file))
      return reply.header('content-encoding', 'gzip').send(createReadStream(`${file}.gz`))
    }
    if (wanted === '/') return reply.type(types['.html']!).send(noConsole)
    return reply.code(404).send({ code: 'FB_NOT_FOUND', message: `there is nothing at ${wanted}` })
  })
}

/** Whether a client accepts gzip; `gzip;q=0` means that it does not. */
function takesGzip(header: string | string[] | undefined): boolean {
  const weight = /(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=([\d.]+))?\s*(?:,|$)/i.exec(String(header ?? ''))
  return weight !== null && Number(weight[1] ?? 1) > 0
}

function fileOf(folder: string, wanted: string): string | undefined {
  const inside = normalize(join(folder, wanted))
  if (inside !== normalize(folder) && !inside.startsWith(normalize(folder + sep))) return undefined
  const isPage = extname(wanted) === '' && !wanted.startsWith('/v1/')
  return [inside, ...(isPage ? [join(folder, 'index.html')] : [])].find(isFile)
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}
