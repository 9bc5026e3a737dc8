import { keyName } from '@firebreak/core'
import { compilePattern } from '@firebreak/core/rules'
import type { Finding, Progress, RedisType } from '@firebreak/find'
import { redisTypes } from '@firebreak/find'
import { type CommandIo, UsageError } from '../../command/command.ts'
import type { FlagValues } from '../../flags/flag-table.ts'
import { durationMs, wholeNumber } from '../../flags/quantities.ts'
import { HubApi } from '../../hub-api/hub-api.ts'
import { ProgressBar } from '../../output/progress-bar.ts'
import { outputFormat } from '../../output/records.ts'
import { parseFailOn } from './fail-on.ts'
import { renderFinding } from './print-finding.ts'

/** What a subcommand needs while searching: bounds, progress, where notes go. */
export interface FindRun {
  readonly io: CommandIo
  readonly values: FlagValues
  /** Ends at Ctrl-C, SIGTERM or after `--max-time`. */
  readonly signal: AbortSignal
  readonly progress: (progress: Progress) => void
  readonly note: (text: string) => void
  readonly bar: ProgressBar
}

export function newRun(values: FlagValues, io: CommandIo): FindRun {
  const maxTime = values.get('max-time')
  const signal =
    maxTime === undefined
      ? io.signal
      : AbortSignal.any([io.signal, AbortSignal.timeout(Math.max(1, durationMs('max-time', maxTime)))])
  const isQuiet = values.has('quiet')
  const bar = new ProgressBar(io.stderr, isQuiet ? { isShown: false } : {})
  return {
    io,
    values,
    signal,
    bar,
    progress: (progress) => bar.update(progress),
    note: (text) => {
      if (isQuiet) return
      bar.clear()
      io.stderr.write(`note: ${text}\n`)
    },
  }
}

/** Prints a finding, sends it to the hub if requested, and returns the exit code. */
export async function finish(run: FindRun, finding: Finding, error?: Error): Promise<number> {
  const { io, values } = run
  // Mistakes in the command line must be reported before the work, so `checkOutput` has already parsed this once.
  const failOn = values.has('fail-on') ? parseFailOn(values.get('fail-on')!) : undefined
  run.bar.clear()
  const format = outputFormat(values)
  const width = format === 'table' && io.stdout.isTTY ? (io.stdout.columns ?? 0) : 0
  io.stdout.write(renderFinding(finding, format, width))
  for (const note of finding.notes) if (note !== error?.message) run.note(note)
  if (!finding.isComplete && error === undefined) run.note('stopped early: showing what was found until then')
  if (values.has('hub')) {
    await HubApi.of(values.get('hub'), io).call('POST', '/v1/findings', finding)
    run.note(`sent to the hub as ${finding.id}`)
  }
  if (error !== undefined) throw error
  const met = failOn?.(finding) ?? []
  if (met.length === 0) return 0
  io.stderr.write(
    `firebreak find: ${values.get('fail-on')} is met by ${met.slice(0, 5).join(', ')}${met.length > 5 ? ` and ${met.length - 5} more` : ''}\n`,
  )
  return 3
}

/** Fails at once if the output flags are wrong, not after an hour of scanning. */
export function checkOutput(values: FlagValues): void {
  if (values.has('fail-on')) parseFailOn(values.get('fail-on')!)
  const formats = ['json', 'ndjson', 'csv'].filter((format) => values.has(format))
  if (formats.length > 1) throw new UsageError(`--${formats.join(' and --')} cannot be combined`)
}

export function topOf(values: FlagValues): number {
  return wholeNumber('top', values.get('top') ?? '20', 1, 10_000)
}

export function typeOf(values: FlagValues): RedisType | undefined {
  const type = values.get('type')
  if (type === undefined) return undefined
  if (!(redisTypes as readonly string[]).includes(type)) {
    throw new UsageError(`--type is "${type}"; it must be one of ${redisTypes.join(', ')}`)
  }
  return type as RedisType
}

/** `--match` as a test of key bytes, for methods without a filter on the server. */
export function matcherOf(values: FlagValues): ((key: Buffer) => boolean) | undefined {
  const glob = values.get('match')
  if (glob === undefined) return undefined
  const matches = compilePattern({ kind: 'glob', glob })
  return (key) => matches(keyName(key))
}
