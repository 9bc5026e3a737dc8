import type { BlockCoverage } from './coverage.ts'
import { type Violation, violationOf } from './law.ts'
import { mutate } from './mutate.ts'
import { SeededRandom } from './random.ts'
import type { FuzzTarget } from './target.ts'

export interface FuzzOptions {
  readonly seed: number
  readonly forMs: number
  /** Mutated inputs that run however long they take: a busy machine leaves no target out. @default 0 */
  readonly leastInputs?: number
  /** Inputs that once broke a rule; they are run first. */
  readonly faults: readonly Buffer[]
  /** Inputs of earlier runs that reached something new. */
  readonly corpus: readonly Buffer[]
  /** Determines what each input of the corpus reaches, for `reaching`. @default false */
  readonly sifts?: boolean
  readonly coverage: BlockCoverage
  /** Called with each input before it runs, so that a watchdog can check that it ends. */
  readonly onInput: (input: Buffer) => void
}

export interface FuzzResult {
  readonly inputs: number
  readonly ms: number
  /** Inputs that are mutated further: the seeds, and those that reached a block which none before had. */
  readonly kept: number
  readonly blocks: number
  /** Those of the corpus that still reach something new (where it was sifted), then those of this run. */
  readonly reaching: readonly Buffer[]
  readonly failure: (Violation & { readonly input: Buffer }) | undefined
}

/** Runs mutated inputs through a target until the time is over or a law is broken; then looks for the smallest input. */
export async function fuzzTarget(target: FuzzTarget, options: FuzzOptions): Promise<FuzzResult> {
  const { coverage, onInput, leastInputs = 0 } = options
  const random = new SeededRandom(options.seed)
  const seeds = target.seeds().map((bytes) => Buffer.from(bytes))
  const known = [...seeds, ...options.faults, ...options.corpus]
  const found: Buffer[] = []
  const blocksBefore = coverage.size
  const startedAt = performance.now()
  let inputs = 0
  const run = async (input: Buffer): Promise<FuzzResult['failure']> => {
    inputs++
    onInput(input)
    const violation = await violationOf(target, input)
    return violation && { ...violation, input: await smallest(target, input, violation, onInput) }
  }
  let failure: FuzzResult['failure']
  for (const input of known) {
    if (options.sifts === true && input === options.corpus[0]) coverage.take()
    failure ??= await run(input)
    if (options.sifts === true && options.corpus.includes(input) && coverage.take().size > 0) found.push(input)
  }
  coverage.take()
  const least = inputs + leastInputs
  const isOver = (ms: number) => inputs >= least && performance.now() - startedAt >= ms
  while (failure === undefined && !isOver(options.forMs)) {
    const batch: Buffer[] = []
    for (let index = target.batch ?? 256; index > 0 && failure === undefined; index--) {
      const input = mutate(random, known, target)
      batch.push(input)
      failure = await run(input)
      if (isOver(options.forMs * 2)) break
    }
    const fresh = coverage.take()
    if (fresh.size === 0 || failure !== undefined) continue
    const input = await reaching(target, batch, fresh, coverage)
    known.push(input)
    found.push(input)
  }
  const ms = performance.now() - startedAt
  return { inputs, ms, kept: known.length, blocks: coverage.size - blocksBefore, reaching: found, failure }
}

/** The input of a batch that reached one of these blocks, by halving. */
async function reaching(
  target: FuzzTarget,
  batch: readonly Buffer[],
  fresh: ReadonlySet<string>,
  coverage: BlockCoverage,
): Promise<Buffer> {
  let from = 0
  let to = batch.length
  while (to - from > 1) {
    const middle = (from + to) >> 1
    coverage.take()
    for (const input of batch.slice(from, middle)) await violationOf(target, input)
    if (coverage.ranAny(fresh)) to = middle
    else from = middle
  }
  return batch[from]!
}

/** A small input that breaks the same law: pieces are left out, half by half, while it still does. */
export async function smallest(
  target: FuzzTarget,
  input: Buffer,
  violation: Violation,
  onInput: (input: Buffer) => void,
): Promise<Buffer> {
  let best = input
  const until = performance.now() + 5000
  for (let size = best.length >> 1; size >= 1; ) {
    let isSmaller = false
    for (let at = 0; at < best.length && performance.now() < until; ) {
      const shorter = Buffer.concat([best.subarray(0, at), best.subarray(at + size)])
      onInput(shorter)
      if ((await violationOf(target, shorter))?.kind === violation.kind) {
        best = shorter
        isSmaller = true
      } else at += size
    }
    if (!isSmaller || size > best.length) size >>= 1
  }
  return best
}
