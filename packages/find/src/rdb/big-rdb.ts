import { infoFields, number } from '../connect/replies.ts'
import { type Finding, type FindingParts, newFileFinding, newFinding } from '../findings/finding.ts'
import { mergeBigKeys } from '../keys/merge-big-keys.ts'
import { replicaDump } from '../live/replica-dump.ts'
import { type FinderOptions, type Progress, ProgressSum, runOnNodes } from '../scan/run-on-nodes.ts'
import { type RdbResult, type ReadRdbOptions, readRdbFile, readRdbStream } from './read-rdb.ts'

/** How a dump file is searched. */
export interface BigRdbOptions extends Omit<ReadRdbOptions, 'progress'> {
  /** The dump; `-` is standard input. */
  readonly file: string
  readonly progress?: (progress: Progress) => void
}

/** How to search servers' data as sent to a replica. */
export type BigLiveOptions = FinderOptions & Omit<ReadRdbOptions, 'progress'> & { readonly prefersReplicas?: boolean }

/** A finding, and the error that ended reading early, if any. */
export interface RdbFinding {
  readonly finding: Finding
  readonly error: Error | undefined
}

/** Finds big keys in a dump file. A damaged dump gives whatever precedes the damage, and the error. */
export async function findBigInRdb(options: BigRdbOptions): Promise<RdbFinding> {
  const startedAtMs = Date.now()
  const { progress, ...rest } = options
  const readOptions: ReadRdbOptions = {
    ...rest,
    ...(progress === undefined
      ? {}
      : { progress: (done, total) => progress({ unit: 'bytes', done, total: total ?? 0 }) }),
  }
  const result =
    options.file === '-'
      ? await readRdbStream(process.stdin, readOptions)
      : await readRdbFile(options.file, readOptions)
  const finding = newFileFinding('big', 'rdb', options.file, startedAtMs, partsOf(result, [result]))
  return { finding, error: result.error }
}

/**
 * Finds big keys in what servers send to a replica: no file is written and no key is touched; the server forks once.
 */
export async function findBigLive(options: BigLiveOptions): Promise<RdbFinding> {
  const startedAtMs = Date.now()
  const { progress, ...rest } = options
  const sum = new ProgressSum('keys', progress)
  const { topology, results } = await runOnNodes(
    { ...options, prefersReplicas: options.prefersReplicas ?? true },
    async (node, connection) => {
      const keyspace = infoFields(await connection.send(['INFO', 'keyspace']).catch(() => ''))
      for (const line of keyspace.values()) sum.expect(number(/keys=(\d+)/.exec(line)?.[1] ?? '0'))
      let seen = 0
      const result = await readRdbStream(replicaDump(connection), {
        ...rest,
        progress: (_bytes, _total, keys) => {
          sum.add(keys - seen)
          seen = keys
        },
      })
      const atNode = <Key extends object>(keys: readonly Key[]) => keys.map((key) => ({ ...key, node: node.address }))
      return {
        ...result,
        keys: atNode(result.keys),
        types: result.types.map((type) => ({
          ...type,
          byBytes: atNode(type.byBytes),
          byElements: atNode(type.byElements),
        })),
      }
    },
  )
  const merged = { ...results[0]!, ...mergeBigKeys(results, options.top ?? 20) }
  const finding = newFinding('big', 'live', topology, startedAtMs, partsOf(merged, results))
  return { finding, error: results.find(({ error }) => error !== undefined)?.error }
}

function partsOf(result: RdbResult, all: readonly RdbResult[]): FindingParts {
  const version = `${result.isValkey ? 'Valkey' : 'Redis'} dump version ${result.version}`
  const server = result.auxiliary['valkey-ver'] ?? result.auxiliary['redis-ver']
  return {
    isComplete: all.every(({ isComplete }) => isComplete),
    scanned: result.seen,
    keys: result.keys,
    types: result.types,
    ...(result.prefixes === undefined ? {} : { prefixes: result.prefixes }),
    counts: { bytesRead: all.reduce((sum, { bytesRead }) => sum + bytesRead, 0) },
    notes: [
      ...(result.version === 0 ? [] : [server === undefined ? version : `${version}, written by ${server}`]),
      ...new Set(all.flatMap(({ notes }) => notes)),
      ...all.flatMap(({ error }) => (error === undefined ? [] : [error.message])),
    ],
  }
}
