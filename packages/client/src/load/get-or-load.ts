import { InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import { loadScript, type Redis, type RedisClient, toRedis } from '@firebreak/redis'
import { sentKeyOf } from '../key-prefix.ts'

const storeScript = loadScript(new URL('./store-loaded.lua', import.meta.url))
const releaseScript = loadScript(new URL('./release-lease.lua', import.meta.url))

/** Loads the value from its source, usually a database; null: it does not exist. */
export type Loader = (key: string) => Promise<string | null>

/** How a value is loaded. */
export interface GetOrLoadOptions {
  /** How long Redis keeps the value; 0: forever. */
  readonly ttlMs: number
  /**
   * The fraction of `ttlMs`, 0 to 1, by which a value's life may be shortened at random, so that values loaded together
   * do not expire together. @default 0.1
   */
  readonly ttlJitter?: number
  /**
   * How long one loader may take before another process tries; 0: no lease, each process loads for itself. @default
   * 5000
   */
  readonly leaseMs?: number
  /** How long a missing value is remembered; 0: not at all. @default 1000 */
  readonly absentTtlMs?: number
  /** How often the others check whether the value has arrived. @default 20 */
  readonly pollMs?: number
  /** Timers, randomness and ids. @default the process' own */
  readonly runtime?: Pick<Runtime, 'timers' | 'random' | 'newId'>
}

const defaultJitter = 0.1

const running = new WeakMap<object, Map<string, Promise<string | null>>>()

/**
 * Reads a key from local memory (if the client is protected and the key hot), from Redis, or from the loader: once
 * across all processes, under a lease on the key's own node, while everyone else waits for the result.
 *
 * A loader that outlives its lease does not write: another may have loaded since. One that fails releases the lease at
 * once, and the next in line tries.
 */
export function getOrLoad(
  client: RedisClient,
  key: string,
  loader: Loader,
  options: GetOrLoadOptions,
): Promise<string | null> {
  if (!(options.ttlMs >= 0))
    throw new InvalidOptionError('ttlMs', options.ttlMs, 'a number of milliseconds, 0 for no limit')
  const { ttlJitter = defaultJitter } = options
  if (!(ttlJitter >= 0 && ttlJitter <= 1))
    throw new InvalidOptionError('ttlJitter', ttlJitter, 'a fraction from 0 to 1')
  let loads = running.get(client)
  if (loads === undefined) running.set(client, (loads = new Map()))
  const known = loads.get(key)
  if (known !== undefined) return known
  const load = readOrLoad(client, key, loader, options).finally(() => loads.delete(key))
  loads.set(key, load)
  return load
}

async function readOrLoad(
  client: RedisClient,
  key: string,
  loader: Loader,
  options: GetOrLoadOptions,
): Promise<string | null> {
  const { leaseMs = 5000, pollMs = 20, ttlJitter = defaultJitter, runtime = systemRuntime } = options
  const lives = (ms: number) => (ms === 0 ? 0 : Math.max(1, Math.round(ms * (1 - ttlJitter * runtime.random()))))
  const ttlMs = lives(options.ttlMs)
  const absentTtlMs = lives(options.absentTtlMs ?? 1000)
  const redis = toRedis(client)
  const sentKey = sentKeyOf(client, key)
  const beside = companions(sentKey)
  for (;;) {
    const value = await read(client, redis, key)
    if (value !== null) return value
    if (absentTtlMs > 0 && (await redis.send(['EXISTS', beside.absent])) === 1) return null
    if (leaseMs === 0) return loadAlone(redis, sentKey, () => loader(key), beside, { ttlMs, absentTtlMs })
    const token = runtime.newId()
    const isOurs = (await redis.send(['SET', beside.lease, token, 'NX', 'PX', leaseMs])) === 'OK'
    if (isOurs) {
      // Between our check and the lease, another may have loaded, stored and released it.
      const stored = (await redis.send(['GET', sentKey])) as string | null
      if (stored === null) {
        return load(redis, sentKey, () => loader(key), token, beside, { ttlMs, absentTtlMs })
      }
      await redis.run(releaseScript, [beside.lease], [token])
      return stored
    }
    const waitMs = pollMs * (0.5 + runtime.random())
    await new Promise<void>((resolve) => runtime.timers.setTimeout(resolve, waitMs))
  }
}

/** Loads without a lease, alongside anyone else who does. */
async function loadAlone(
  redis: Redis,
  sentKey: string | Buffer,
  bring: () => Promise<string | null>,
  { absent }: Companions,
  { ttlMs, absentTtlMs }: { ttlMs: number; absentTtlMs: number },
): Promise<string | null> {
  const value = await bring()
  if (value === null) {
    if (absentTtlMs > 0) await redis.send(['SET', absent, '1', 'PX', absentTtlMs])
    return null
  }
  await redis.send(ttlMs === 0 ? ['SET', sentKey, value] : ['SET', sentKey, value, 'PX', ttlMs])
  await redis.send(['DEL', absent])
  return value
}

async function load(
  redis: Redis,
  sentKey: string | Buffer,
  bring: () => Promise<string | null>,
  token: string,
  beside: Companions,
  { ttlMs, absentTtlMs }: { ttlMs: number; absentTtlMs: number },
): Promise<string | null> {
  try {
    const value = await bring()
    const args = [token, value === null ? '0' : '1', value ?? '', value === null ? absentTtlMs : ttlMs]
    await redis.run(storeScript, [sentKey, beside.lease, beside.absent], args)
    return value
  } catch (error) {
    await redis.run(releaseScript, [beside.lease], [token]).catch(() => {})
    throw error
  }
}

/** Uses the client's own method, which a protected client answers from memory. */
function read(client: RedisClient, redis: Redis, key: string): Promise<string | null> {
  const { get } = client as { get?: (key: string) => Promise<string | null> }
  if (typeof get === 'function') return get.call(client, key)
  return redis.send(['GET', key]) as Promise<string | null>
}

/** The lease and the note of absence are on the key's own node. */
function companions(key: string | Buffer): Companions {
  // Latin-1 has one character for each byte.
  const text = Buffer.from(key).toString('latin1')
  const isTagged = /^[^{]*\{[^}]+\}/.test(text)
  // A key with a `}` and no tag cannot be a tag itself: the tag would end there.
  const base = isTagged ? text : text.includes('}') ? `{${tagInSlot(keySlot(Buffer.from(key)))}}${text}` : `{${text}}`
  return { lease: Buffer.from(`${base}:fb-load`, 'latin1'), absent: Buffer.from(`${base}:fb-absent`, 'latin1') }
}

const tags = new Map<number, number>()

/** The smallest number that lies in the slot when it is used as a tag. */
function tagInSlot(slot: number): number {
  let tag = tags.get(slot)
  if (tag === undefined) {
    tag = 0
    while (keySlot(String(tag)) !== slot) tag++
    tags.set(slot, tag)
  }
  return tag
}

interface Companions {
  readonly lease: Buffer
  readonly absent: Buffer
}
