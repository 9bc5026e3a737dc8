import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const folder = new URL('corpus/', import.meta.url)
/** For one target; the whole corpus must stay small enough to be cloned and read through. */
const mostInputs = 32
const mostBytes = 16 * 1024
const largestInput = 2048

const fileOf = (target: string) => new URL(`${target}.txt`, folder)

/** The inputs of earlier runs that reached something new, one in base64 on each line. */
export function readCorpus(target: string): Buffer[] {
  if (!existsSync(fileOf(target))) return []
  const lines = readFileSync(fileOf(target), 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => Buffer.from(line, 'base64'))
}

/**
 * Writes what a run found reaching, in the order in which it was found: the first ones reach the most. Inputs that are
 * too large, and those beyond the bounds, are left out; a run finds them again.
 */
export function writeCorpus(target: string, reaching: readonly Buffer[]): void {
  const kept = new Set<string>()
  let bytes = 0
  for (const input of reaching) {
    if (input.length > largestInput || bytes + input.length > mostBytes || kept.size === mostInputs) continue
    const line = input.toString('base64')
    if (line === '' || kept.has(line)) continue
    kept.add(line)
    bytes += input.length
  }
  if (kept.size === 0) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(fileOf(target), [...kept, ''].join('\n'))
}
