import { faultText, type SeedFailure, type SeedOutcome } from '@firebreak/testkit'
import { formatFaults } from './command-line.ts'
import type { ModelName } from './models.ts'

/** The combined result of several seeds. */
export interface Totals {
  seeds: number
  failures: number
  simulatedSeconds: number
  faults: number
  calls: number
}

/** A line for a seed, and for a failure the details needed to investigate it. */
export function outcomeText(model: ModelName, outcome: SeedOutcome): string {
  const { seed, simulatedMs, cpuMs, faults, calls, events, digest, failure } = outcome
  const figures = [
    `${(simulatedMs / 1000).toFixed(1)} simulated s in ${(cpuMs / 1000).toFixed(1)} s`,
    `${faults} faults`,
    `${calls.toLocaleString('en-US')} calls`,
    `${events.toLocaleString('en-US')} events`,
    `log ${digest.slice(0, 12)}`,
  ]
  const line = `seed ${seed}: ${failure === undefined ? 'kept' : 'FAILED'}, ${figures.join(', ')}`
  return failure === undefined ? line : `${line}\n${failureText(model, seed, failure)}`
}

function failureText(
  model: ModelName,
  seed: number,
  { error, smallestError, schedule, lastEvents }: SeedFailure,
): string {
  const first = textOf(error)
  const smallest = textOf(smallestError)
  const modelWord = model === 'fleet' ? '' : ` --model ${model}`
  return [
    first,
    ...(smallest === first ? [] : [`with the smallest schedule: ${smallest}`]),
    `smallest schedule that still fails, ${schedule.length} faults:`,
    ...schedule.map((fault) => `  ${faultText(fault)}`),
    'last events:',
    ...lastEvents.map((event) => `  ${event}`),
    `replay: npm run simulate -- --seed ${seed}${modelWord} --faults '${formatFaults(schedule)}'`,
  ].join('\n')
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.name === 'BrokenLaw' ? error.message : (error.stack ?? error.message)
}
