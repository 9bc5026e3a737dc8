import type { ModelName } from '../models.ts'

/** A bug planted into one file while it is loaded: `find` occurs there exactly once. */
export interface Mutant {
  /** What is wrong with it, in words. */
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
  /** @default 'fleet' */
  readonly model?: ModelName
  /** Seeds of the fleet within which it must be found. @default 40 */
  readonly seeds?: number
  /** The first seed finds it at once, so every run of the tests hunts it. */
  readonly isQuick?: true
}

const shield = 'packages/shield/src'
const hub = 'packages/hub/src'
const proxy = 'packages/proxy/src'

export const mutants: readonly Mutant[] = [
  {
    name: 'an own write is not guarded',
    file: `${shield}/gate/gate.ts`,
    find: 'if (written !== undefined) return this.#guard(request, written, connection)',
    replace: 'if (written !== undefined) return pass',
  },
  {
    name: 'a read that goes around the memory leaves older replies there',
    file: `${shield}/gate/gate.ts`,
    find: `return { kind: 'guarded', end: this.#trouble.guarded(() => this.#around.answered(hot, wanted)) }`,
    replace: 'return pass',
  },
  {
    name: 'a reply is served without its lease',
    file: `${shield}/cache/hot-key.ts`,
    find: 'now >= reply.expiresAt || now >= reply.lease.aliveUntil ? undefined : reply',
    replace: 'now >= reply.expiresAt ? undefined : reply',
  },
  {
    name: 'a reply outlives its TTL',
    file: `${shield}/cache/hot-key.ts`,
    find: 'now >= reply.expiresAt || now >= reply.lease.aliveUntil ? undefined : reply',
    replace: 'now >= reply.lease.aliveUntil ? undefined : reply',
  },
  {
    name: 'poison is not looked at',
    file: `${shield}/cache/hot-key.ts`,
    find: 'return !load.isPoisoned && this.isCached && this.pendingWrites === 0',
    replace: 'return this.isCached',
  },
  {
    name: 'a lapsed reply is kept for the next lease',
    file: `${shield}/cache/hot-key.ts`,
    find: 'if (this.isConsistent) this.drop()',
    replace: 'if (!this.isConsistent) this.drop()',
  },
  {
    name: 'a push of one key is not heard',
    file: `${shield}/watcher/tracking-watcher.ts`,
    find: 'if (Array.isArray(keys)) this.#options.onInvalidated',
    replace: 'if (Array.isArray(keys)) if (keys.length > 1) this.#options.onInvalidated',
  },
  {
    name: 'a lease counts from the answer, not from the question',
    file: `${shield}/watcher/tracking-watcher.ts`,
    find: 'const until = connection.answeredSentAt + this.#options.leaseMs',
    replace: 'const until = this.#options.clock.now() + this.#options.leaseMs',
  },
  {
    name: 'what a lost watcher guarded is kept',
    file: `${shield}/watcher/tracking-watcher.ts`,
    find: `this.#options.onFlush('the watcher was lost')`,
    replace: '',
  },
  {
    name: 'a read waits for its watcher for ever',
    file: `${shield}/watcher/tracking-watcher.ts`,
    find: 'if (now - read.sentAt > leaseMs) this.#finish(read, undefined)',
    replace: 'if (now - read.sentAt > leaseMs * 100) this.#finish(read, undefined)',
  },
  {
    name: 'a reply is handled behind the push that follows it',
    file: 'packages/core/src/connection/resp-connection.ts',
    find: 'expectation.handler(reply, index)',
    replace: 'queueMicrotask(() => expectation.handler(reply, index))',
  },
  {
    name: 'a dead connection is used on where tracking is refused',
    file: `${shield}/watcher/tracking-watcher.ts`,
    find: 'if (!this.#isGreeted || (this.#isIdle && this.#reads.size === 0)) return',
    replace: `if (this.#state !== 'live' || (this.#isIdle && this.#reads.size === 0)) return`,
  },
  {
    name: 'a reader waits for a load that is older than its guard',
    file: `${shield}/cache/load.ts`,
    find: 'if (running !== undefined && now - running.since <= maxAgeMs) {',
    replace: 'if (running !== undefined) {',
  },
  {
    name: 'a reader of copies waits on and on',
    file: `${shield}/copies/copy-set.ts`,
    find: '() => this.#giveBackLate()',
    replace: '() => {}',
  },
  {
    name: 'a copy is read whatever its version',
    file: `${shield}/copies/copy-set.ts`,
    find: 'reading?.version !== undefined && reading.version >= this.#seenVersion',
    replace: 'reading?.version !== undefined',
  },
  {
    name: 'an own write is not looked for in a copy',
    file: `${shield}/copies/copy-set.ts`,
    find: 'this.#seenVersion = Number.POSITIVE_INFINITY\n    this.#epoch++',
    replace: 'this.#epoch++',
  },
  {
    name: 'an older picture is put over a newer copy',
    file: `${shield}/copies/put.lua`,
    // Both what the marker says and what is kept beside it.
    find: `  if tonumber(version) >= tonumber(ARGV[1]) then return 'newer' end
end
-- The marker of a newer picture may have expired, or been removed with its copy, while this one was on its way.
if tonumber(redis.call('GET', KEYS[4]) or 0) > tonumber(ARGV[1]) then return 'late' end`,
    replace: 'end',
  },
  {
    name: 'a copy is vouched for after its key has changed',
    file: `${shield}/gate/cluster-hot-keys.ts`,
    find: 'hot.copies?.changed()',
    replace: '',
  },
  {
    name: 'who is not told of changes is elected',
    file: `${shield}/copies/refresher.ts`,
    find: 'if (canFollow) {\n      if',
    replace: 'if (true) {\n      if',
  },
  {
    name: 'a claim is never taken back',
    file: `${shield}/table/cluster-table.ts`,
    find: 'if (this.#keys.names.get(name.name) !== name) return',
    replace: 'if (this.#keys.names.get(name.name) !== name || name.handling.isClaim) return',
  },
  {
    name: 'a limit lets everything through',
    file: `${shield}/limit/key-limit.ts`,
    find: 'if (answer.allowed && !mustQueue) return answer.delayMs > 0 && canWait ? this.#delay(answer.delayMs) : undefined',
    replace: 'return undefined',
  },
  {
    name: 'a silent hub is waited for',
    file: `${shield}/hub/hub-link.ts`,
    find: 'this.#options.clock.now() - this.#heardAt <= this.#silenceMs',
    replace: 'this.#options.clock.now() - this.#heardAt <= this.#silenceMs * 100',
  },
  {
    name: 'a hub that is cut off keeps its sensors',
    file: `${shield}/shield.ts`,
    find: 'if (heartbeat.isAlone === true) this.#link.preferAnother()',
    replace: 'if (heartbeat.isAlone === true) void 0',
  },
  {
    name: 'a report is sent twice under two numbers',
    file: `${shield}/hub/hub-link.ts`,
    find: 'this.#write(encodeReportFrame(report, reporter, ++this.#reportSequence, wallClock.now()))',
    replace:
      'for (let twice = 0; twice < 2; twice++) this.#write(encodeReportFrame(report, reporter, ++this.#reportSequence, wallClock.now()))',
  },
  {
    name: 'a frame of a later version is refused',
    file: `${hub}/deliver/sensor-session.ts`,
    find: '} else if (error instanceof UnknownFrameError) {',
    replace: '} else if (error === undefined) {',
  },
  {
    name: 'rules are compared by their number alone',
    file: `${hub}/board/shared-hub.ts`,
    find: 'isOther || newestChange !== headOf(book.line) || rulesVersion !== book.list().version',
    replace: 'rulesVersion > book.list().version',
  },
  {
    name: 'an older store is believed',
    file: `${hub}/store/change-line.ts`,
    find: `if (storedHead === '' || holds(own, storedHead)) return 'behind'`,
    replace: `if (storedHead === '' || holds(own, storedHead)) return 'ahead'`,
  },
  {
    name: 'a change has no audit entry',
    file: `${hub}/store/lua/change.lua`,
    find: `if ARGV[5] ~= '' then`,
    replace: 'if false then',
  },
  {
    name: 'a batch of history is written again',
    file: `${hub}/store/lua/append-history.lua`,
    find: "if tonumber(redis.call('GET', KEYS[2]) or 0) >= tonumber(ARGV[1]) then return 0 end",
    replace: '',
  },
  {
    name: 'a switch thrown without the store is forgotten',
    file: `${hub}/store/journal.ts`,
    find: `this.#writer.write('switch', saveAll)`,
    replace: 'this.#pendingSwitches = []',
  },
  {
    name: 'a gap in the outbox is ignored',
    file: `${hub}/board/board-exchange.ts`,
    find: 'if (sequence !== bucket.sequence + 1) {',
    replace: 'if (sequence < 0) {',
  },
  {
    name: 'a bucket that failed is not loaded again',
    file: `${hub}/board/board-exchange.ts`,
    find: 'bucket.mustLoad = true\n    bucket.mayHaveLost = true\n    this.#options',
    replace: 'this.#options',
  },
  {
    name: 'a dead hub stays listed',
    file: `${hub}/board/lua/sync.lua`,
    find: 'if now - tonumber(at) > tonumber(ARGV[4]) then',
    replace: 'if false then',
  },
  {
    name: 'a key never cools',
    file: `${hub}/board/lua/post.lua`,
    find: 'if held == 0 and mayLeave and now >= (state.heldUntil or 0) then',
    replace: 'if false then',
  },
  {
    name: 'a connection of the proxy that died is used on',
    file: `${proxy}/upstream/upstream-node.ts`,
    find: 'for (const lane of silent) lane.giveWay()',
    replace: '',
  },
  {
    name: 'the proxy ends a write’s guard as soon as it is sent',
    file: `${proxy}/shield/proxy-shield.ts`,
    find: 'return new WriteGuard(target, verdict.end)',
    replace: 'verdict.end(); return target',
  },
  {
    name: 'a post is added to what the hub told before',
    file: `${hub}/board/lua/post.lua`,
    find: `    redis.call('HSET', heatKey, settings.hubId, cjson.encode(window))
    redis.call('PEXPIRE'`,
    replace: `    local before = redis.call('HGET', heatKey, settings.hubId)
    if before then for index, more in ipairs(cjson.decode(before).a) do window.a[index] = (window.a[index] or 0) + more end end
    redis.call('HSET', heatKey, settings.hubId, cjson.encode(window))
    redis.call('PEXPIRE'`,
  },
  {
    name: 'everybody who asks is elected',
    file: `${shield}/copies/elect.lua`,
    find: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end`,
    replace: `redis.call('SET', KEYS[1], ARGV[1])`,
  },
  {
    name: 'a report is lost now and then',
    file: `${shield}/hub/hub-link.ts`,
    find: 'this.#write(encodeReportFrame(report, reporter, ++this.#reportSequence, wallClock.now()))',
    replace:
      'if (++this.#reportSequence % 50 > 0) this.#write(encodeReportFrame(report, reporter, this.#reportSequence, wallClock.now()))',
  },
  {
    name: 'a change that the lane tells is not heard',
    file: `${shield}/shield.ts`,
    find: 'this.#clusters.get(invalidation.redisClusterId)?.invalidate(invalidation)',
    replace: '',
    model: 'lane',
    isQuick: true,
  },
  {
    name: 'a gap on the lane is ignored',
    file: `${shield}/shield.ts`,
    find: 'if (this.#lane.heard(laneHead)) this.#laneMissed()',
    replace: 'this.#lane.heard(laneHead)',
    model: 'lane',
  },
  {
    name: 'a lease of the lane counts from the heartbeat, not from what it says',
    file: `${shield}/shield.ts`,
    find: 'const completeAt = hubTime - this.#hubClock.offsetMs - completeAgoMs',
    replace: 'const completeAt = hubTime - this.#hubClock.offsetMs',
    model: 'lane',
  },
  {
    name: 'a lock is held beyond its lease',
    file: 'packages/locks/src/lease/hold.ts',
    find: `return this.state === 'held' && now < this.deadline`,
    replace: `return this.state === 'held'`,
    model: 'locks',
  },
  {
    name: 'a lock is taken whoever holds it',
    file: 'packages/locks/src/lock/acquire.lua',
    find: `if call('EXISTS', lock) == 1 and call('HEXISTS', lock, owner) == 0 then return -1 - call('PTTL', lock) end`,
    replace: '',
    model: 'locks',
  },
  {
    name: 'a token comes from a counter that was lost',
    file: 'packages/locks/src/token/next-token.lua',
    find: `if token > 1 and token > floor and isFirst ~= '1' then return token end`,
    replace: 'do return token end',
    model: 'locks',
  },
  {
    name: 'an item is sold that is not there',
    file: 'packages/sale/src/purchase/purchase.lua',
    find: `if not isHolder and stock <= 0 then return`,
    replace: 'if false then return',
    model: 'sale',
  },
  {
    name: 'an order that is sent twice is two orders',
    file: 'packages/sale/src/purchase/purchase.lua',
    find: 'if answer then return answer end',
    replace: '',
    model: 'sale',
  },
]
