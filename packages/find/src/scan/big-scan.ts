import { keySlotOfBytes } from '@firebreak/core/commands'
import type { RespClient, RespValue } from '@firebreak/core/resp'
import { number, text } from '../connect/replies.ts'
import type { ServerNode } from '../connect/topology.ts'
import { type Finding, newFinding } from '../findings/finding.ts'
import { BigKeyCollector, type BigKeyOptions } from '../keys/big-key-collector.ts'
import { unescapeKey } from '../keys/escape-key.ts'
import type { FoundKey, RedisType } from '../keys/found-key.ts'
import { mergeBigKeys } from '../keys/merge-big-keys.ts'
import { Probe } from './probe.ts'
import { type FinderOptions, ProgressSum, runOnNodes } from './run-on-nodes.ts'
import { keyCount, probeKeys, type ScanOptions, scanNode } from './scan-node.ts'

/** Options for finding big keys with SCAN and MEMORY USAGE. */
export interface BigScanOptions
  extends FinderOptions,
    Omit<ScanOptions, 'type'>,
    Omit<BigKeyOptions, 'matches' | 'top'> {
  /** Elements that MEMORY USAGE samples to estimate a collection; 0 means all. @default 5 */
  readonly samples?: number
  /** Read replicas if there are any, otherwise masters. @default true */
  readonly prefersReplicas?: boolean
  /**
   * Count elements. On servers before 7.2 that counts as an access to each key, so it is left out there unless
   * requested or a replica is read.
   * @default if it does no harm
   */
  readonly countsElements?: boolean
  /** Look up whether each key expires: one more command per key. @default false */
  readonly looksUpTtl?: boolean
}

const lengthCommands: Readonly<Record<string, Probe>> = {
  list: new Probe(['LLEN']),
  set: new Probe(['SCARD']),
  zset: new Probe(['ZCARD']),
  hash: new Probe(['HLEN']),
  stream: new Probe(['XLEN']),
}
const knownTypes = new Set<string>(['string', 'list', 'set', 'zset', 'hash', 'stream'])
const typeProbe = new Probe(['TYPE'])
const ttlProbe = new Probe(['PTTL'])

/** Finds the biggest keys of every type, by memory and by elements, without affecting what the server evicts. */
export async function findBigByScan(options: BigScanOptions): Promise<Finding> {
  const startedAtMs = Date.now()
  const progress = new ProgressSum('keys', options.progress)
  const { topology, results } = await runOnNodes(
    { ...options, prefersReplicas: options.prefersReplicas ?? true },
    (node, connection) => scanOne(node, connection, options, progress),
  )
  const merged = mergeBigKeys(
    results.map(({ found }) => found),
    options.top ?? 20,
  )
  return newFinding('big', 'scan', topology, startedAtMs, {
    isComplete: results.every(({ isComplete }) => isComplete),
    scanned: merged.seen,
    keys: merged.keys,
    types: merged.types,
    ...(merged.prefixes === undefined ? {} : { prefixes: merged.prefixes }),
    notes: [...new Set(results.flatMap(({ notes }) => notes))],
  })
}

async function scanOne(node: ServerNode, connection: RespClient, options: BigScanOptions, progress: ProgressSum) {
  const { commandsPerWrite, looksUpTtl = false } = options
  const notes: string[] = []
  const isQuiet = await silence(connection)
  const countsElements = options.countsElements ?? (isQuiet || node.role === 'replica')
  if (!countsElements) {
    notes.push(
      `elements were not counted: on a server before 7.2 (${node.address}) that would count as an access to every key; use --elements to do it anyway`,
    )
  } else if (!isQuiet && node.role === 'master') {
    notes.push(`counting elements on ${node.address} counted as an access to every key and changed LRU and LFU data`)
  }
  progress.expect(await keyCount(connection))
  const collector = new BigKeyCollector({ ...options, isTtlKnown: looksUpTtl })
  const usageProbe = new Probe(['MEMORY', 'USAGE'], ['SAMPLES', String(options.samples ?? 5)])
  const { isComplete } = await scanNode(connection, serverFilters(options), async (keys) => {
    const page = new Page(keys)
    await probeKeys(
      connection,
      keys,
      [
        { probe: typeProbe, take: (_key, reply, index) => page.type(index, reply) },
        { probe: usageProbe, take: (_key, reply, index) => page.usage(index, reply) },
        ...(looksUpTtl
          ? [{ probe: ttlProbe, take: (_key: Uint8Array, reply: RespValue, index: number) => page.ttl(index, reply) }]
          : []),
      ],
      commandsPerWrite,
    )
    if (countsElements) await countElements(connection, page, commandsPerWrite)
    page.collect(collector)
    progress.add(keys.length)
  })
  if (!isComplete) notes.push('the scan was stopped early: it may have missed bigger keys')
  const found = collector.result()
  const details = await describe(node, connection, found)
  return { isComplete, notes, found: details }
}

/** The filters that the server applies; a module's type can only be filtered here. */
function serverFilters(options: BigScanOptions): ScanOptions {
  const { type, ...rest } = options
  return type === undefined || type === 'module' ? rest : { ...rest, type }
}

/** Makes this connection leave no trace in LRU and LFU; false if the server does not support that (before 7.2). */
async function silence(connection: RespClient): Promise<boolean> {
  return connection.send(['CLIENT', 'NO-TOUCH', 'ON']).then(
    () => true,
    () => false,
  )
}

/** One page of keys with the server's answers about them. */
class Page {
  readonly keys: readonly Uint8Array[]
  readonly types: (RedisType | undefined)[]
  readonly bytes: number[]
  readonly elements: number[]
  readonly hasTtl: boolean[]

  constructor(keys: readonly Uint8Array[]) {
    this.keys = keys
    this.types = new Array(keys.length).fill(undefined)
    this.bytes = new Array(keys.length).fill(0)
    this.elements = new Array(keys.length).fill(0)
    this.hasTtl = new Array(keys.length).fill(false)
  }

  type(index: number, reply: RespValue): void {
    const name = text(reply)
    if (name === 'none') return
    this.types[index] = (knownTypes.has(name) ? name : 'module') as RedisType
    if (name === 'string') this.elements[index] = 1
  }

  usage(index: number, reply: RespValue): void {
    // A key that has since been deleted answers nil.
    if (typeof reply === 'number') this.bytes[index] = reply
  }

  ttl(index: number, reply: RespValue): void {
    this.hasTtl[index] = typeof reply === 'number' && reply >= 0
  }

  collect(collector: BigKeyCollector): void {
    for (let index = 0; index < this.keys.length; index++) {
      const type = this.types[index]
      if (type === undefined || this.bytes[index] === 0) continue
      const key = this.keys[index]!
      collector.add(
        {
          key: Buffer.from(key.buffer, key.byteOffset, key.length),
          type,
          bytes: this.bytes[index]!,
          elements: this.elements[index]!,
          hasTtl: this.hasTtl[index]!,
        },
        nothingMore,
      )
    }
  }
}

const nothingMore = () => ({})

async function countElements(connection: RespClient, page: Page, commandsPerWrite: number | undefined): Promise<void> {
  for (const [type, probe] of Object.entries(lengthCommands)) {
    const indexes = page.types.flatMap((one, index) => (one === type ? [index] : []))
    if (indexes.length === 0) continue
    await probeKeys(
      connection,
      indexes.map((index) => page.keys[index]!),
      [
        {
          probe,
          take: (_key, reply, index) => {
            if (typeof reply === 'number') page.elements[indexes[index]!] = reply
          },
        },
      ],
      commandsPerWrite,
    )
  }
}

/** Looks up encoding and TTL of the kept keys. */
async function describe(
  node: ServerNode,
  connection: RespClient,
  found: ReturnType<BigKeyCollector['result']>,
): Promise<ReturnType<BigKeyCollector['result']>> {
  const names = [
    ...new Set(
      [found.keys, ...found.types.flatMap(({ byBytes, byElements }) => [byBytes, byElements])]
        .flat()
        .map(({ key }) => key),
    ),
  ]
  const keys = names.map((name) => unescapeKey(name))
  const details = new Map<string, Partial<FoundKey>>()
  const encodings = new Array<string>(keys.length).fill('')
  const ttls = new Array<number>(keys.length).fill(-1)
  await probeKeys(connection, keys, [
    { probe: new Probe(['OBJECT', 'ENCODING']), take: (_key, reply, index) => void (encodings[index] = text(reply)) },
    { probe: ttlProbe, take: (_key, reply, index) => void (ttls[index] = number(reply)) },
  ])
  names.forEach((name, index) => {
    details.set(name, {
      node: node.address,
      ...(node.slots === undefined ? {} : { slot: keySlotOfBytes(keys[index]!) }),
      ...(/^[a-z]+\d?$/.test(encodings[index]!) ? { encoding: encodings[index]! } : {}),
      ...(ttls[index]! >= 0 ? { ttlMs: ttls[index]! } : {}),
    })
  })
  const withDetails = (list: readonly FoundKey[]) => list.map((key) => ({ ...key, ...details.get(key.key) }))
  return {
    ...found,
    keys: withDetails(found.keys),
    types: found.types.map((type) => ({
      ...type,
      byBytes: withDetails(type.byBytes),
      byElements: withDetails(type.byElements),
    })),
  }
}
