import { cpus } from 'node:os'

/** One figure of a benchmark: a value with its unit, or a ratio of two things measured in the same run. */
export type Figure =
  | { readonly id: string; readonly value: number; readonly unit: string; readonly note?: string }
  | { readonly id: string; readonly ratio: number; readonly of: string; readonly to: string; readonly note?: string }

const flags = new Set(process.argv.slice(2))

/** `--quick`: less work per round, done within 45 s. */
export const isQuick: boolean = flags.has('--quick')
const isJson = flags.has('--json')

/** A count for a quick run, or for a whole one. */
export function rounds(quick: number, whole: number): number {
  return isQuick ? quick : whole
}

/** Progress and remarks: on stderr, so that `--json` stays clean. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Prints figures as they come; call `done` last, which names the versions and the machine. */
export class Bench {
  readonly #name: string
  readonly #figures: Figure[] = []

  constructor(name: string) {
    this.#name = name
  }

  report(figure: Figure): void {
    this.#figures.push(figure)
    if (isJson) process.stdout.write(`${JSON.stringify({ bench: this.#name, ...figure })}\n`)
  }

  done(versions: Record<string, string> = {}): void {
    const machine = {
      node: process.versions.node,
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      ...versions,
    }
    if (isJson) {
      process.stdout.write(`${JSON.stringify({ bench: this.#name, machine })}\n`)
      return
    }
    const width = Math.max(...this.#figures.map(({ id }) => id.length))
    for (const figure of this.#figures) {
      const text =
        'ratio' in figure
          ? `${round(figure.ratio)}× (${figure.of} to ${figure.to})`
          : `${round(figure.value)} ${figure.unit}`
      process.stdout.write(
        `${figure.id.padEnd(width)}  ${text}${figure.note === undefined ? '' : `  — ${figure.note}`}\n`,
      )
    }
    process.stdout.write(
      `\n${Object.entries(machine)
        .map(([name, value]) => `${name} ${value}`)
        .join(', ')}\n`,
    )
  }
}

function round(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(4)))
}

/** The middle value. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The value below which the share `q` of the values lies. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = (sorted.length - 1) * q
  const low = Math.floor(middle)
  const high = Math.ceil(middle)
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (middle - low)
}

/**
 * Runs the contestants in turn, round after round, so that a noisy moment hits all of them; each gives its speed. The
 * order alternates between rounds. Returns every contestant's speeds by round.
 */
export async function interleaved<Name extends string>(
  count: number,
  contestants: Record<Name, () => number | Promise<number>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contestants) as Name[]
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>
  for (let index = 0; index < count; index++) {
    const order = index % 2 === 0 ? names : [...names].reverse()
    for (const name of order) results[name].push(await contestants[name]())
  }
  return results
}

/** The median over rounds of `a`'s speed divided by `b`'s in the same round. */
export function medianRatio(a: readonly number[], b: readonly number[]): number {
  return median(a.map((value, index) => value / b[index]!))
}
