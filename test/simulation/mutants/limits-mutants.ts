import type { Mutant } from './mutants.ts'

const redis = 'packages/limits/src/redis'

const planted: readonly Omit<Mutant, 'model'>[] = [
  {
    name: 'a window of the epoch is forgotten when the clock steps back',
    file: `${redis}/lua/take-window.lua`,
    find: 'if now < oldStop then',
    replace: 'if now < oldStop and oldStop <= now + window then',
    isQuick: true,
  },
  {
    name: 'a bucket drains again whenever the clock has gone to and fro',
    file: `${redis}/lua/states.lua`,
    find: 'return min(back, 1 + floor((2 * capacity - unit - debt) / rate))',
    replace: 'return 0',
  },
  {
    name: 'the buckets of a window are forgotten when the clock steps back',
    file: `${redis}/lua/buckets.lua`,
    find: 's.bucket, s.dirty = latest, latest < newest',
    replace: 's.dirty, list = true, ""',
  },
  {
    name: 'a log drops what is ahead of the clock',
    file: `${redis}/lua/log.lua`,
    find: `call('ZADD', key, latest, member)`,
    replace: `call('ZREM', key, member)`,
  },
  {
    name: 'two weighted windows begin again when the clock steps back',
    file: `${redis}/lua/counter.lua`,
    find: 's.before, s.current, s.dirty = before, current, s.start < start',
    replace: 's.dirty = true',
  },
  {
    name: 'a window that is far ahead of the clock is waited for',
    file: `${redis}/lua/states.lua`,
    find: 'return stop > latest + span and latest or min(stop, latest + 1)',
    replace: 'return stop',
  },
  {
    name: 'a call that comes too late is charged',
    file: `${redis}/lua/time.lua`,
    find: `if ARGV[2] ~= '' and now > tonumber(ARGV[2]) then return { now } end`,
    replace: '',
  },
  {
    name: 'a refund that is asked for again counts again',
    file: `${redis}/lua/refund.lua`,
    find: `if KEYS[2] and not call('SET', KEYS[2], '1', 'NX', 'PX', markMs) then return { now, 0 } end`,
    replace: '',
  },
  {
    name: 'a call waits for its reply however long that takes',
    file: `${redis}/availability.ts`,
    find: 'if (call.endsAt > now) {',
    replace: 'if (call.endsAt > now - 400) {',
  },
  {
    name: 'what is denied is let in where Redis is away',
    file: `${redis}/redis-limiter.ts`,
    find: `const isOpen = this.#options.onUnavailable !== 'closed' && cost <= this.plan.maxCost`,
    replace: 'const isOpen = cost <= this.plan.maxCost',
  },
  {
    name: 'a charge of two in one turn is one',
    file: `${redis}/lua/take-window.lua`,
    find: 'count, dirty = count + fits * cost, true',
    replace: 'count, dirty = count + cost, true',
  },
]

/** The guards of limits, taken out one at a time. */
export const limitsMutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, model: 'limits' }))
