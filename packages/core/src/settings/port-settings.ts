import { type Setting, wholeFrom } from './setting.ts'

const milliseconds = wholeFrom(100, 3_600_000)

/** The settings for what strangers may take of an HTTP port: `HttpBounds`. */
export const portSettings: readonly Setting[] = [
  {
    name: 'maxConnections',
    type: wholeFrom(1, 1e6),
    default: '20000',
    summary: 'maximum number of connections; further ones are closed on arrival',
  },
  {
    name: 'headersTimeoutMs',
    type: milliseconds,
    default: '10000',
    summary: 'time limit for the head of a request',
  },
  {
    name: 'requestTimeoutMs',
    type: milliseconds,
    default: '30000',
    summary: 'time limit for a whole request including its body; at least headersTimeoutMs',
  },
  {
    name: 'idleTimeoutMs',
    type: milliseconds,
    default: '75000',
    summary: 'close a connection that has been idle for this long',
  },
]

/** The values of those settings, and of others that `names` adds, as the one option that servers take. */
export function portBounds(values: Readonly<Record<string, unknown>>, names: readonly string[] = []) {
  const wanted = [...portSettings.map(({ name }) => name), ...names]
  const bounds = Object.fromEntries(
    wanted.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]),
  )
  const others = Object.fromEntries(Object.entries(values).filter(([name]) => !wanted.includes(name)))
  return { bounds: Object.keys(bounds).length === 0 ? undefined : (bounds as Record<string, number>), others }
}
