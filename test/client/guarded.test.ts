import { shieldOf, unprotect } from '@firebreak/client'
import { defaultLocalCache, type Strategy } from '@firebreak/core'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { OpenClients } from '../../packages/client/src/clients/open-clients.ts'
import { SharedUpstream } from '../../packages/client/src/clients/shared-upstream.ts'
import { ListRequest } from '../../packages/client/src/commands/list-request.ts'
import { IoredisConnection } from '../../packages/client/src/ioredis/ioredis-connection.ts'
import { ReplyReader } from '../../packages/client/src/node-redis/reply-reader.ts'
import { CachedReply } from '../../packages/shield/src/cache/cached-reply.ts'
import { HotKey } from '../../packages/shield/src/cache/hot-key.ts'
import { Loads } from '../../packages/shield/src/cache/load.ts'
import { ReplyCaches } from '../../packages/shield/src/cache/reply-caches.ts'
import { ReplySet } from '../../packages/shield/src/cache/reply-set.ts'
import { ClusterShield } from '../../packages/shield/src/cluster-shield.ts'
import { CombineOwner } from '../../packages/shield/src/combine/combine-owner.ts'
import { CombineRights } from '../../packages/shield/src/combine/combine-rights.ts'
import { CombinedCounter } from '../../packages/shield/src/combine/combined-counter.ts'
import { Combining } from '../../packages/shield/src/combine/combining.ts'
import { CopyServers } from '../../packages/shield/src/copies/copy-servers.ts'
import { CopySet } from '../../packages/shield/src/copies/copy-set.ts'
import { CopyWriter } from '../../packages/shield/src/copies/copy-writer.ts'
import { OwnCopies } from '../../packages/shield/src/copies/own-copies.ts'
import { PlacedCopies } from '../../packages/shield/src/copies/placed-copies.ts'
import { Refresher } from '../../packages/shield/src/copies/refresher.ts'
import { AccessLog } from '../../packages/shield/src/counting/access-log.ts'
import { ByteAccesses } from '../../packages/shield/src/counting/byte-accesses.ts'
import { ClusterHotKeys } from '../../packages/shield/src/gate/cluster-hot-keys.ts'
import { Gate } from '../../packages/shield/src/gate/gate.ts'
import { HotName } from '../../packages/shield/src/gate/hot-name.ts'
import { HotNames } from '../../packages/shield/src/gate/hot-names.ts'
import { KeySurvey } from '../../packages/shield/src/gate/key-survey.ts'
import { OpenState } from '../../packages/shield/src/gate/open-state.ts'
import { ReadsAround } from '../../packages/shield/src/gate/reads-around.ts'
import { HubLink } from '../../packages/shield/src/hub/hub-link.ts'
import { Lane } from '../../packages/shield/src/hub/lane.ts'
import { Reporting } from '../../packages/shield/src/hub/reporting.ts'
import { KeyLimit } from '../../packages/shield/src/limit/key-limit.ts'
import { LoadProbe } from '../../packages/shield/src/load/load-probe.ts'
import { Shield } from '../../packages/shield/src/shield.ts'
import { Tally } from '../../packages/shield/src/status/tally.ts'
import { ClusterTable } from '../../packages/shield/src/table/cluster-table.ts'
import { FollowedTable } from '../../packages/shield/src/table/followed-table.ts'
import { ClusterWatchers } from '../../packages/shield/src/watcher/cluster-watchers.ts'
import { TrackingWatcher } from '../../packages/shield/src/watcher/tracking-watcher.ts'
import { Fixture } from './fixture.ts'
import { type AnyClient, libraries } from './libraries.ts'

// Each method of ours, one after another, throws whenever it is called. An application must not notice: its calls get the
// replies of Redis, none of them hangs or fails, and nothing of ours ends its process.

const classes: Readonly<Record<string, { readonly prototype: object }>> = {
  AccessLog,
  ByteAccesses,
  CachedReply,
  ClusterHotKeys,
  ClusterShield,
  ClusterTable,
  ClusterWatchers,
  CombineOwner,
  CombineRights,
  CombinedCounter,
  Combining,
  CopyServers,
  CopySet,
  CopyWriter,
  FollowedTable,
  Gate,
  HotKey,
  HotName,
  HotNames,
  HubLink,
  IoredisConnection,
  KeyLimit,
  KeySurvey,
  Lane,
  ListRequest,
  LoadProbe,
  Loads,
  OpenClients,
  OpenState,
  OwnCopies,
  PlacedCopies,
  ReadsAround,
  Refresher,
  ReplyCaches,
  ReplyReader,
  ReplySet,
  Reporting,
  SharedUpstream,
  Shield,
  Tally,
  TrackingWatcher,
}

/** What ends a protection is not called while an application uses its client; the others are the guards themselves. */
const isLeftOut = (name: string) => /^(constructor|close|passAfter|trouble)$/.test(name)

const strategies: Readonly<Record<string, Strategy>> = {
  cached: { ...defaultLocalCache, expireTime: 60 },
  copied: { strategy: 'RedundantKeys', copies: ['copied_1', 'copied_2'], ttlJitterMs: 0 },
  limited: {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 1000,
    burst: 2,
    windowMs: 1000,
    onLimit: 'wait',
    scope: 'process',
  },
  counter: { strategy: 'Combine', maxCombined: 100 },
}

let server: RedisServer
let fixture: Fixture
const escaped: unknown[] = []
const onEscaped = (error: unknown) => escaped.push(error)

beforeAll(async () => {
  server = await startRedis()
  process.on('uncaughtException', onEscaped)
  process.on('unhandledRejection', onEscaped)
})
afterAll(async () => {
  process.off('uncaughtException', onEscaped)
  process.off('unhandledRejection', onEscaped)
  await server.stop()
})
beforeEach(async () => {
  escaped.length = 0
  fixture = await Fixture.start(server.port)
})
afterEach(() => fixture.close())

/** Replaces a method or getter by one that throws; `end` puts it back and says how often it was called. */
function plant(owner: object, name: string): () => number {
  const before = Object.getOwnPropertyDescriptor(owner, name)!
  let count = 0
  const broken = () => {
    count++
    throw new Error(`planted in ${name}`)
  }
  if (before.get !== undefined) Object.defineProperty(owner, name, { ...before, get: broken })
  else Object.defineProperty(owner, name, { ...before, value: broken })
  return () => {
    Object.defineProperty(owner, name, before)
    return count
  }
}

/** Uses a client in every way that the gate knows; throws where a reply is not that of Redis. */
async function useEach(client: AnyClient, round: string): Promise<void> {
  const { plain } = fixture
  for (const key of ['cached', 'copied', 'limited', 'cold']) await plain.set(key, 'x')
  await plain.del('counter')
  const replies = {
    sets: Promise.all(['cached', 'copied', 'limited', 'cold'].map((key) => client.set(key, round))),
    reads: Promise.all(
      ['cached', 'copied', 'limited', 'cold'].flatMap((key) => [client.get(key), client.reads['STRLEN']!(key)]),
    ),
    held: Promise.all([1, 2, 3, 4, 5].map(() => client.get('limited'))),
    counts: Promise.all([1, 2, 3, 4].map(() => client.call(['INCR', 'counter']))),
    keys: client.call(['KEYS', 'col*']),
    // Not in order with those before it, on every library.
    bytes: client.getBuffer('cached'),
  }
  // One that fails is reported where it is awaited.
  for (const reply of Object.values(replies)) Promise.resolve(reply).catch(() => {})
  expect((await replies.sets).map(String)).toEqual(['OK', 'OK', 'OK', 'OK'])
  const one = [round, round.length]
  expect(await replies.reads).toEqual([...one, ...one, ...one, ...one])
  expect(await replies.held).toEqual([round, round, round, round, round])
  expect((await replies.counts).map(Number).sort()).toEqual([1, 2, 3, 4])
  expect(((await replies.keys) as unknown[]).map(String)).toEqual(['cold'])
  expect(String(await replies.bytes)).toBe(round)
  const batch = [
    ['GET', 'cached'],
    ['SET', 'cached', `${round}.`],
    ['INCR', 'counter'],
  ]
  expect(flat(await client.pipeline(batch))).toEqual([round, 'OK', '5'])
  expect(flat(await client.multi([['GET', 'cached']]))).toEqual([`${round}.`])
  await plain.set('cached', 'foreign')
  // A push that ours fails to handle ends what it guards, at the latest with its lease.
  await waitFor(async () => (await client.get('cached')) === 'foreign', { what: 'another client’s write' })
}

/** Replies of a batch; ioredis gives them with their errors. */
function flat(replies: unknown): string[] {
  return (replies as unknown[]).map((reply) => String(Array.isArray(reply) ? reply[1] : reply))
}

async function heated(name: string): Promise<AnyClient> {
  const client = await libraries[name]!({ kind: 'standalone', port: server.port })
  await fixture.adopt(client.raw, { maxLimitWaitMs: 60_000, canaryMs: 50 })
  const until = fixture.hub.now() + 3_600_000
  for (const [key, strategy] of Object.entries(strategies)) fixture.hub.heat('main', [key], { strategy, until })
  await waitFor(() => shieldOf(client.raw)?.tableVersion.version === fixture.hub.version)
  await useEach(client, 'whole')
  return client
}

const hungMs = 30_000

/** Some of ours hangs: longer than any guard waits for us. */
function hung(): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve('calls hang'), hungMs).unref())
}

test.each(Object.keys(libraries))('%s: nobody notices which part of ours fails', { timeout: 900_000 }, async (name) => {
  const failures: string[] = []
  let planted = 0
  for (const [label, { prototype }] of Object.entries(classes)) {
    const client = await heated(name)
    const shield = shieldOf(client.raw)!
    for (const method of Object.getOwnPropertyNames(prototype)) {
      if (isLeftOut(method)) continue
      const before = shield.trouble.count
      const end = plant(prototype, method)
      const used = useEach(client, `v${planted}`).then(
        () => undefined,
        (error: unknown) => error,
      )
      const outcome = await Promise.race([used, hung()])
      const count = end()
      const where = `${label}.${method} (${count})`
      if (outcome !== undefined) failures.push(`${where}: ${outcome}`)
      for (const error of escaped.splice(0)) failures.push(`${where} escaped: ${(error as Error).stack}`)
      if (count > 0 && shield.trouble.count === before) failures.push(`${where}: not told`)
      if (count > 0) planted++
    }
    unprotect(client.raw)
    client.close()
  }
  expect(failures.join('\n')).toBe('')
  // Which of those in timers are called depends on the time.
  expect(planted).toBeGreaterThan(60)
})
