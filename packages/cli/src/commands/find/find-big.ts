import { findBigByScan, findBigInRdb, findBigLive } from '@firebreak/find'
import { UsageError } from '../../command/command.ts'
import { connectionOf } from '../../connect/connection-flags.ts'
import type { FlagValues } from '../../flags/flag-table.ts'
import { byteCount, wholeNumber } from '../../flags/quantities.ts'
import { scanOptions } from './find-hot.ts'
import { type FindRun, finish, matcherOf, topOf, typeOf } from './find-run.ts'

/** `firebreak find big` */
export async function runFindBig(run: FindRun): Promise<number> {
  const { values, io, signal, progress } = run
  const chosen = ['scan', 'rdb', 'live'].filter((method) => values.has(method))
  if (chosen.length > 1) throw new UsageError(`--${chosen.join(' and --')} cannot be combined: choose one method`)
  const common = { ...bigOptions(values), signal, progress }
  const matches = matcherOf(values)
  const filter = matches === undefined ? {} : { matches }
  if (values.has('rdb')) {
    const { finding, error } = await findBigInRdb({ ...common, ...filter, file: values.get('rdb')! })
    return finish(run, finding, error)
  }
  const connection = await connectionOf(values, io)
  const prefersReplicas = !values.has('masters')
  if (values.has('live')) {
    run.note('the server forks once to send its data, as it does for a new replica')
    const { finding, error } = await findBigLive({ ...common, ...filter, ...connection, prefersReplicas })
    return finish(run, finding, error)
  }
  const match = values.get('match')
  const finding = await findBigByScan({
    ...common,
    ...connection,
    ...scanOptions(values),
    ...(match === undefined ? {} : { match }),
    ...(values.has('elements') ? { countsElements: true } : {}),
    samples: wholeNumber('samples', values.get('samples') ?? '5', 0, 1_000_000_000),
    prefersReplicas,
  })
  return finish(run, finding)
}

function bigOptions(values: FlagValues) {
  const minBytes = values.get('min-bytes')
  const minElements = values.get('min-elements')
  const type = typeOf(values)
  return {
    top: topOf(values),
    ...(type === undefined ? {} : { type }),
    ...(minBytes === undefined ? {} : { minBytes: byteCount('min-bytes', minBytes) }),
    ...(minElements === undefined
      ? {}
      : { minElements: wholeNumber('min-elements', minElements, 0, Number.MAX_SAFE_INTEGER) }),
    prefixes: {
      separators: values.get('separators') ?? ':',
      maxDepth: wholeNumber('depth', values.get('depth') ?? '4', 1, 32),
    },
  }
}
