import { findSlots, monitorWarning } from '@firebreak/find'
import { UsageError } from '../../command/command.ts'
import { connectionOf } from '../../connect/connection-flags.ts'
import { captureOptions, monitorOptions } from './find-hot.ts'
import { type FindRun, finish, matcherOf, topOf } from './find-run.ts'

/** `firebreak find slots` */
export async function runFindSlots(run: FindRun): Promise<number> {
  const { values, io, signal, progress } = run
  if (values.has('monitor') && values.has('capture')) {
    throw new UsageError('--monitor and --capture cannot be combined: choose one method')
  }
  const skewAbove = Number(values.get('skew') ?? '1.5')
  if (!(skewAbove >= 1)) throw new UsageError(`--skew is "${values.get('skew')}"; it must be at least 1`)
  if (values.has('monitor')) run.note(monitorWarning)
  const connection = await connectionOf(values, io)
  const matches = matcherOf(values)
  const { ports: _ports, bufferKib: _bufferKib, ...capture } = captureOptions(run, connection.target.port ?? 6379)
  const finding = await findSlots({
    ...connection,
    ...monitorOptions(values),
    ...capture,
    ...(matches === undefined ? {} : { matches }),
    top: topOf(values),
    signal,
    progress,
    skewAbove,
    keysBy: values.has('monitor') ? 'monitor' : values.has('capture') ? 'capture' : 'none',
  })
  return finish(run, finding)
}
