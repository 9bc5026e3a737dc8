/** One line of MONITOR. */
export interface MonitorLine {
  readonly timestampSeconds: number
  readonly database: number
  /** `host:port` of the client, `lua` for a script's own commands, `unix:/path`. */
  readonly client: string
  readonly args: readonly Buffer[]
}

const head = /^\+?(\d+\.\d+) \[(\d+) ([^\]]*(?:\][^ ]*)?)\] /

/** Parses `1700000000.123456 [0 127.0.0.1:5000] "GET" "key"`; undefined if the line does not look like that. */
export function parseMonitorLine(line: string): MonitorLine | undefined {
  const match = head.exec(line)
  if (match === null) return undefined
  const args: Buffer[] = []
  let at = match[0].length
  while (at < line.length) {
    if (line[at] !== '"') return undefined
    const end = closingQuote(line, at + 1)
    if (end < 0) return undefined
    args.push(unquote(line, at + 1, end))
    at = end + 2
  }
  if (args.length === 0) return undefined
  return { timestampSeconds: Number(match[1]), database: Number(match[2]), client: match[3]!, args }
}

function closingQuote(line: string, from: number): number {
  for (let at = line.indexOf('"', from); at >= 0; at = line.indexOf('"', at + 1)) {
    let slashes = 0
    while (line[at - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return at
  }
  return -1
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' }

/** The bytes of a quoted argument; the server writes everything that is not printable ASCII as an escape. */
function unquote(line: string, from: number, to: number): Buffer {
  const quoted = line.slice(from, to)
  if (!quoted.includes('\\')) return Buffer.from(quoted, 'latin1')
  return Buffer.from(
    quoted.replace(/\\(?:x([0-9a-fA-F]{2})|(.))/g, (_match, hex: string | undefined, char: string) =>
      hex === undefined ? (escapes[char] ?? char) : String.fromCharCode(Number.parseInt(hex, 16)),
    ),
    'latin1',
  )
}
