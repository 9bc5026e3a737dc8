import { defaultLocalCache, type Strategy, systemRuntime } from '@firebreak/core'
import { HotKey } from '../cache/hot-key.ts'
import { KeptKeys, TouchedKeys } from '../cache/key-lists.ts'
import { ReplyCaches } from '../cache/reply-caches.ts'
import type { SharedByKeys } from '../cache/shared-by-keys.ts'
import { KeySpace } from '../gate/key-space.ts'
import type { KeyLimit } from '../limit/key-limit.ts'
import { Trouble } from '../trouble/trouble.ts'
import { LaneLease } from '../watcher/lease.ts'
import type { ReadingHandler, TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { Upstream } from '../watcher/upstream.ts'

/** A hot key whose watcher answers when the test says so. */
export function watchedKey(strategy: Strategy = defaultLocalCache, rightsMs?: number) {
  let now = 1000
  let rolled = 0
  const reads: ReadingHandler[] = []
  const asked: string[] = []
  const lease = { aliveUntil: Number.POSITIVE_INFINITY }
  const watched = { node: 'n', canRead: true, lease, state: 'live' }
  const watcher = Object.assign(watched, {
    read(_: number, __: Uint8Array, command: Uint8Array, handler: ReadingHandler) {
      asked.push(Buffer.from(command).toString('latin1'))
      reads.push(handler)
    },
  }) as unknown as TrackingWatcher
  const space = new KeySpace('', 0, { rightsMs } as Upstream)
  const shared: SharedByKeys = {
    redisClusterId: 'main',
    processId: 'test',
    runtime: { ...systemRuntime, clock: { now: () => now }, random: () => rolled },
    trouble: new Trouble(() => {}),
    isActive: () => true,
    watchers: { at: () => watcher },
    guards: { leaseMs: 300, lane: new LaneLease(), fallbackTtlMs: 100 },
    caches: new ReplyCaches(),
    kept: new KeptKeys(),
    touched: new TouchedKeys(),
    limits: { of: () => ({ keepsLast: true }) as KeyLimit, leave: () => {} },
    diskTier: undefined,
  }
  const make = (name: string) => new HotKey(name, space, { strategy, ruleId: 'r', until: 1e12, isClaim: false }, shared)
  const answer = (text: string, pttlMs = -1) =>
    reads.shift()!({ reply: Buffer.from(`$${text.length}\r\n${text}\r\n`), pttlMs }, now)
  return {
    hot: make('k'),
    make,
    reads,
    /** The commands of all reads so far. */
    asked,
    answer,
    lease,
    watched,
    at: (time: number) => (now = time),
    roll: (value: number) => (rolled = value),
    now: () => now,
  }
}
