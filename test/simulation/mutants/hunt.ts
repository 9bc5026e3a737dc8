import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ModelName, quickSeeds } from '../models.ts'
import type { Mutant } from './mutants.ts'

/** A bug planted into the fleet must be found within this many seeds; in a package, by the seeds of its quick run. */
export const mutantSeeds = 40
/**
 * Processor time after which a run is ended, some ten times what all its seeds take: a mutant may spin for ever. Not time
 * of the clock, by which a busy machine would look like a fault.
 */
const maxCpuSeconds = 600

/** How much of a failure is printed. */
const maxText = 300

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** The result of the hunt. */
export interface Hunt {
  readonly mutants: number
  readonly found: number
  /** How many seeds it took to find the most hidden of those found. */
  readonly worstSeeds: number
}

/** Plays seeds of a model in a child process; returns the number of a failing one and the first line of its failure. */
interface Played {
  readonly seeds: number
  readonly failure: { readonly seed: number; readonly text: string } | undefined
}

/** Plants each bug and plays seeds until one fails; reports each. Two run at a time. */
export async function huntMutants(list: readonly Mutant[]): Promise<Hunt> {
  let found = 0
  let worstSeeds = 0
  const left = [...list]
  const huntNext = async (): Promise<void> => {
    const mutant = left.shift()
    if (mutant === undefined) return
    const { seeds, failure } = await hunt(mutant)
    if (failure === undefined) process.stderr.write(`NOT FOUND in ${seeds} seeds: ${mutant.name} (${mutant.file})\n`)
    else {
      found++
      worstSeeds = Math.max(worstSeeds, seeds)
      process.stderr.write(`found by seed ${failure.seed}: ${mutant.name} (${mutant.file}): ${failure.text}\n`)
    }
    return huntNext()
  }
  await Promise.all([huntNext(), huntNext()])
  return { mutants: list.length, found, worstSeeds }
}

/** Plays seeds with one planted bug until one fails that passes without it. */
async function hunt(mutant: Mutant): Promise<Played> {
  const { model = 'fleet', seeds: limit = mutantSeeds } = mutant
  const quick = quickSeeds[model]
  const from = quick?.[0] ?? 1
  const end = from + (quick?.length ?? limit)
  for (let next = from; next < end; ) {
    const { failure } = await play(model, next, end - next, mutant)
    if (failure === undefined) break
    if (await isSound(model, failure.seed)) return { seeds: failure.seed - from + 1, failure }
    process.stderr.write(`seed ${failure.seed} of ${model} fails by itself, and finds nothing\n`)
    next = failure.seed + 1
  }
  return { seeds: end - from, failure: undefined }
}

const sound = new Map<string, Promise<boolean>>()

/** Whether a seed keeps all laws without a planted bug: one that does not would find everything. */
function isSound(model: ModelName, seed: number): Promise<boolean> {
  const name = `${model} ${seed}`
  const known = sound.get(name) ?? play(model, seed, 1).then(({ failure }) => failure === undefined)
  sound.set(name, known)
  return known
}

/** A child that ends without its report has failed too, in the seed after the last one that passed. */
async function play(model: ModelName, from: number, count: number, mutant?: Mutant): Promise<Played> {
  const planted = mutant && { path: join(root, mutant.file), find: mutant.find, replace: mutant.replace }
  const words = [
    ...['--disable-warning=ExperimentalWarning', '--conditions=firebreak-source'],
    ...(planted === undefined ? [] : ['--import', join(root, 'test/simulation/mutants/apply.mjs')]),
    join(root, 'test/simulation/main.ts'),
    ...['--model', model, '--seeds', String(count), '--from', String(from), '--hasty', '--json'],
  ]
  const child = spawn('sh', ['-c', `ulimit -t ${maxCpuSeconds}; exec "$@"`, 'sh', process.execPath, ...words], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...(planted && { FIREBREAK_MUTANT: JSON.stringify(planted) }) },
  })
  let out = ''
  let told = ''
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (told += chunk))
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.on('close', (...end) => resolve(end))
  })
  const lines = told.split('\n')
  const kept = lines.filter((line) => /^seed \d+: kept/.test(line)).length
  const last = out.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) {
    if (told.includes('does not have exactly once')) throw new Error(told)
    const why = signal === 'SIGXCPU' ? `no end in ${maxCpuSeconds} s of processor time` : `ended with ${signal ?? code}`
    return { seeds: kept + 1, failure: { seed: from + kept, text: `${why} ${reason(lines)}`.trim() } }
  }
  if ((JSON.parse(last) as { failures: number }).failures === 0) return { seeds: kept, failure: undefined }
  const failed = lines.findIndex((line) => /^seed \d+: FAILED/.test(line))
  return { seeds: kept + 1, failure: { seed: from + kept, text: (lines[failed + 1] ?? '').trim().slice(0, maxText) } }
}

/** From the output of a failed child: the error, or else its last lines. */
function reason(lines: readonly string[]): string {
  const said = lines.filter((line) => line.trim() !== '' && !line.startsWith('seed '))
  return (said.find((line) => /Error/.test(line)) ?? said.at(-1) ?? '').trim()
}
