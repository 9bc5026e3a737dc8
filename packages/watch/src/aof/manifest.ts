import { WatchError } from '../errors.ts'

/** One file of a multi-part AOF (Redis ≥ 7). */
export interface AofPart {
  readonly file: string
  readonly sequence: number
  /** `b`: base, a full snapshot; `i`: increment, the commands since; `h`: history, about to be deleted. */
  readonly type: 'b' | 'i' | 'h'
}

const linePattern = /^file (?:"((?:[^"\\]|\\.)*)"|(\S+)) seq (\d+) type ([bih])(?: .*)?$/

/** The parts listed in a manifest, in order. */
export function parseManifest(text: string): AofPart[] {
  const parts: AofPart[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === '' || line.startsWith('#')) continue
    const match = line.match(linePattern)
    if (match === null)
      throw new WatchError(
        'FB_WATCH_AOF',
        `cannot parse line ${index + 1} of the AOF manifest: "${line.slice(0, 100)}"`,
      )
    const file = match[1]?.replaceAll(/\\(.)/g, '$1') ?? match[2]!
    parts.push({ file, sequence: Number(match[3]), type: match[4] as AofPart['type'] })
  }
  return parts
}

/** The increments in ascending order; the last one is being written. */
export function increments(parts: readonly AofPart[]): AofPart[] {
  return parts.filter(({ type }) => type === 'i').sort((a, b) => a.sequence - b.sequence)
}
