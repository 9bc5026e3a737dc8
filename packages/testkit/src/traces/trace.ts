import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { seededRandom } from '../time/fake-runtime.ts'

/** A recorded or generated sequence of key accesses. */
export interface Trace {
  readonly name: string
  /** True if the recorded trace was missing and a Zipf trace replaces it. */
  readonly isGenerated: boolean
  /** One key id per request. */
  readonly ids: Uint32Array
  /** The key of each id. */
  readonly keys: readonly string[]
}

const folder =
  process.env['FIREBREAK_TRACES'] ?? join(dirname(fileURLToPath(import.meta.url)), '../../../../../shared/traces')

/** The recorded traces that can be loaded here. */
export function traceNames(): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.endsWith('.u32.gz'))
    .map((file) => file.slice(0, -'.u32.gz'.length))
    .sort()
}

/** Loads a recorded trace, or generates a Zipf trace and says so if it is missing. */
export function loadTrace(name: string): Trace {
  const idsFile = join(folder, `${name}.u32.gz`)
  if (!existsSync(idsFile)) {
    process.stderr.write(`trace ${name} is missing (set FIREBREAK_TRACES): using a generated Zipf trace instead\n`)
    return zipfTrace(1_000_000, 80_000, 0.9)
  }
  const raw = gunzipSync(readFileSync(idsFile))
  const ids = new Uint32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength))
  const keys = gunzipSync(readFileSync(join(folder, `${name}.keys.gz`)))
    .toString('utf8')
    .split('\n')
  if (keys.at(-1) === '') keys.pop()
  return { name, isGenerated: false, ids, keys }
}

/** Requests over `keyCount` keys where the i-th has weight 1 / i^exponent; the same for the same arguments. */
export function zipfTrace(requests: number, keyCount: number, exponent: number, seed = 42): Trace {
  const cumulative = new Float64Array(keyCount)
  let total = 0
  for (let index = 0; index < keyCount; index++) cumulative[index] = total += 1 / (index + 1) ** exponent
  const random = seededRandom(seed)
  const ids = new Uint32Array(requests)
  for (let index = 0; index < requests; index++) {
    const wanted = random() * total
    let low = 0
    let high = keyCount - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (cumulative[middle]! < wanted) low = middle + 1
      else high = middle
    }
    ids[index] = low
  }
  return {
    name: `zipf-${exponent}`,
    isGenerated: true,
    ids,
    keys: Array.from({ length: keyCount }, (_, index) => `key:${index}`),
  }
}
