import {
  type Finding,
  findHotByCapture,
  findHotByMonitor,
  findHotByScan,
  findHotByServer,
  monitorWarning,
} from '@firebreak/find'
import { UsageError } from '../../command/command.ts'
import { connectionOf } from '../../connect/connection-flags.ts'
import type { FlagValues } from '../../flags/flag-table.ts'
import { byteCount, durationMs, wholeNumber } from '../../flags/quantities.ts'
import { type FindRun, finish, matcherOf, topOf, typeOf } from './find-run.ts'

const methods = ['scan', 'monitor', 'capture', 'server'] as const

/** `firebreak find hot` */
export async function runFindHot(run: FindRun): Promise<number> {
  const { values } = run
  const chosen = methods.filter((method) => values.has(method))
  if (chosen.length > 1) throw new UsageError(`--${chosen.join(' and --')} cannot be combined: choose one method`)
  return finish(run, await look(run, chosen[0] ?? (values.has('file') ? 'capture' : 'scan')))
}

async function look(run: FindRun, method: (typeof methods)[number]): Promise<Finding> {
  const { values, io, signal, progress } = run
  const common = { top: topOf(values), signal, progress }
  const match = values.get('match')
  const type = typeOf(values)
  if (method === 'capture') {
    const matches = matcherOf(values)
    return findHotByCapture({
      ...common,
      ...captureOptions(run, await portOf(run)),
      ...(matches === undefined ? {} : { matches }),
      ...(type === undefined ? {} : { type }),
    })
  }
  const connection = await connectionOf(values, io)
  if (method === 'server') return findHotByServer({ ...common, ...connection, durationMs: duration(values) })
  if (method === 'monitor') {
    run.note(monitorWarning)
    const matches = matcherOf(values)
    return findHotByMonitor({
      ...common,
      ...connection,
      ...monitorOptions(values),
      ...(matches === undefined ? {} : { matches }),
      ...(type === undefined ? {} : { type }),
    })
  }
  return findHotByScan({
    ...common,
    ...connection,
    ...scanOptions(values),
    ...(match === undefined ? {} : { match }),
    ...(type === undefined ? {} : { type }),
    resampleMs: durationMs('resample', values.get('resample') ?? '2s'),
  })
}

function duration(values: FlagValues): number {
  return Math.max(1, durationMs('duration', values.get('duration') ?? '10s'))
}

/** How hard a scan goes. */
export function scanOptions(values: FlagValues) {
  const throttle = values.get('throttle')
  const count = values.get('count')
  return {
    ...(count === undefined ? {} : { count: wholeNumber('count', count, 1, 100_000) }),
    isGentle: values.has('gentle'),
    ...(throttle === undefined ? {} : { keysPerSecond: wholeNumber('throttle', throttle, 1, 100_000_000) }),
  }
}

/** The bounds of MONITOR. */
export function monitorOptions(values: FlagValues) {
  return {
    durationMs: duration(values),
    burstMs: Math.max(10, durationMs('burst', values.get('burst') ?? '500ms')),
    restMs: durationMs('rest', values.get('rest') ?? '500ms'),
    maxBytes: byteCount('max-bytes', values.get('max-bytes') ?? '64mb'),
  }
}

/** What and where to capture. */
export function captureOptions({ values }: FindRun, port: number) {
  const file = values.get('file')
  const ports = values
    .get('ports')
    ?.split(',')
    .map((text) => wholeNumber('ports', text.trim(), 1, 65535)) ?? [port]
  return {
    ports,
    durationMs: duration(values),
    interface: values.get('interface') ?? 'any',
    bufferKib: Math.ceil(byteCount('buffer', values.get('buffer') ?? '64mb') / 1024),
    ...(file === undefined ? {} : { file }),
  }
}

async function portOf({ values, io }: FindRun): Promise<number> {
  if (values.has('ports')) return 6379
  const { target } = await connectionOf(values, io)
  return target.port ?? 6379
}
