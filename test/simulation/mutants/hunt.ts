import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { quickSeeds } from '../models.ts'
import type { Mutant } from './mutants.ts'

/** A fault planted into the fleet must be found within so many seeds; in a room, by the seeds of its quick run. */
export const mutantSeeds = 40

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** What became of the hunt. */
export interface Hunt {
  readonly mutants: number
  readonly found: number
  /** The seeds that the most hidden of those found took. */
  readonly worstSeeds: number
}

/** Plants each fault and plays seeds until one fails; tells of each. Two run at a time. */
export async function huntMutants(list: readonly Mutant[]): Promise<Hunt> {
  let found = 0
  let worstSeeds = 0
  const left = [...list]
  const huntNext = async (): Promise<void> => {
    const mutant = left.shift()
    if (mutant === undefined) return
    const { seeds, from, law } = await hunt(mutant)
    if (law === undefined) process.stderr.write(`NOT FOUND in ${seeds} seeds: ${mutant.name} (${mutant.file})\n`)
    else {
      found++
      worstSeeds = Math.max(worstSeeds, seeds)
      process.stderr.write(`found by seed ${from + seeds - 1}: ${mutant.name} (${mutant.file}): ${law}\n`)
    }
    return huntNext()
  }
  await Promise.all([huntNext(), huntNext()])
  return { mutants: list.length, found, worstSeeds }
}

/** Plays seeds with one fault planted; `law` is the first line of what broke. */
async function hunt(mutant: Mutant): Promise<{ seeds: number; from: number; law: string | undefined }> {
  const { file, find, replace, model = 'fleet' } = mutant
  const quick = quickSeeds[model]
  const from = quick?.[0] ?? 1
  const count = quick?.length ?? mutantSeeds
  const planted = JSON.stringify({ path: join(root, file), find, replace })
  const child = spawn(
    process.execPath,
    [
      ...['--disable-warning=ExperimentalWarning', '--conditions=firebreak-source'],
      ...['--import', join(root, 'test/simulation/mutants/apply.mjs')],
      join(root, 'test/simulation/main.ts'),
      ...['--model', model, '--seeds', String(count), '--from', String(from), '--hasty', '--json'],
    ],
    { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, FIREBREAK_MUTANT: planted } },
  )
  let out = ''
  let told = ''
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (told += chunk))
  await new Promise((resolve) => child.on('close', resolve))
  const last = out.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) throw new Error(`${mutant.name}: ${told}`)
  const { seeds, failures } = JSON.parse(last) as { seeds: number; failures: number }
  return { seeds, from, law: failures === 0 ? undefined : (told.split('\n')[1] ?? '').trim() }
}
