/** How a server presents itself to clients. */
export type ServerMode = 'standalone' | 'cluster' | 'sentinel'

/** The `name:value` lines of INFO. */
export function parseInfo(text: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0 && !line.startsWith('#')) fields.set(line.slice(0, colon), line.slice(colon + 1))
  }
  return fields
}

/** The mode in `INFO server`: Redis reports it in `redis_mode`, Valkey 8 and later in `server_mode`. */
export function serverModeOf(info: ReadonlyMap<string, string>): ServerMode {
  const mode = info.get('server_mode') ?? info.get('redis_mode')
  return mode === 'cluster' || mode === 'sentinel' ? mode : 'standalone'
}
