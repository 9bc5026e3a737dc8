import { InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { loadScript, type Redis, type RedisClient, toRedis } from '@firebreak/redis'
import { sentKeyOf } from '../key-prefix.ts'

const storeScript = loadScript(new URL('./store-loaded.lua', import.meta.url))
const releaseScript = loadScript(new URL('./release-lease.lua', import.meta.url))

/** Brings the value from where it comes from, a database as a rule; null: there is none. */
export type Loader = (key: string) => Promise<string | null>

/** How a value is loaded. */
export interface GetOrLoadOptions {
  /** How long Redis keeps the value; 0: for ever. */
  readonly ttlMs: number
  /** How long one loader may take before another process tries. @default 5000 */
  readonly leaseMs?: number
  /** How long "there is none" is remembered; 0: not at all. @default 1000 */
  readonly absentTtlMs?: number
  /** How often the others look whether the value has come. @default 20 */
  readonly pollMs?: number
  /** Timers, chance and names. @default the process' own */
  readonly runtime?: Pick<Runtime, 'timers' | 'random' | 'newId'>
}

const running = new WeakMap<object, Map<string, Promise<string | null>>>()

/**
 * Reads a key from local memory (where the client is protected and the key hot), from Redis, and else from the loader:
 * once in all processes together, under a lease on the key's own node, with everybody else waiting for what it brings.
 *
 * A loader that outlives its lease does not write: another may have loaded since. One that fails gives the lease back at
 * once, and the next in line tries.
 */
export function getOrLoad(
  client: RedisClient,
  key: string,
  loader: Loader,
  options: GetOrLoadOptions,
): Promise<string | null> {
  if (!(options.ttlMs >= 0))
    throw new InvalidOptionError('ttlMs', options.ttlMs, 'a number of milliseconds, 0 for ever')
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
  const { ttlMs, leaseMs = 5000, absentTtlMs = 1000, pollMs = 20, runtime = systemRuntime } = options
  const redis = toRedis(client)
  const sentKey = sentKeyOf(client, key)
  const beside = companions(sentKey)
  for (;;) {
    const value = await read(client, redis, key)
    if (value !== null) return value
    if (absentTtlMs > 0 && (await redis.send(['EXISTS', beside.absent])) === 1) return null
    const token = runtime.newId()
    const isOurs = (await redis.send(['SET', beside.lease, token, 'NX', 'PX', leaseMs])) === 'OK'
    if (isOurs) {
      // Between our look and the lease another may have loaded, stored and let go.
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

/** Through the client's own method, which a protected client answers from memory. */
function read(client: RedisClient, redis: Redis, key: string): Promise<string | null> {
  const { get } = client as { get?: (key: string) => Promise<string | null> }
  if (typeof get === 'function') return get.call(client, key)
  return redis.send(['GET', key]) as Promise<string | null>
}

/** The lease and the note of absence are on the key's own node. */
function companions(key: string | Buffer): Companions {
  // Latin-1 has one character for each byte.
  const text = Buffer.from(key).toString('latin1')
  const base = /^[^{]*\{[^}]+\}/.test(text) ? text : `{${text}}`
  return { lease: Buffer.from(`${base}:fb-load`, 'latin1'), absent: Buffer.from(`${base}:fb-absent`, 'latin1') }
}

interface Companions {
  readonly lease: Buffer
  readonly absent: Buffer
}
