import { allCommands, type CommandRow } from '@firebreak/core/commands'

/** Numbers from 0 to 1, the same for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** One of a list. */
export function pickOf<Item>(list: readonly Item[], random: () => number): Item {
  return list[Math.floor(random() * list.length)]!
}

/** Keys of every type, of none, and one of bytes that are no text. One slot has them all. */
export const keyNames = [
  ...['{t}str', '{t}num', '{t}hash', '{t}list', '{t}set', '{t}zset', '{t}stream', '{t}bits', '{t}hll', '{t}geo'],
  ...['{t}none', '{t}bin\xff\x00'],
]

const words = ['1', '0', '-1', '5', 'x', '', 'abc', '*', '(1', '[a', '+', '-', '$', '>', '0-1', 'inf', '1.5', 'ff\xff']
const options = ['WITHSCORES', 'LIMIT', 'COUNT', 'NX', 'XX', 'GET', 'EX', 'BY', 'MATCH', 'LEFT', 'RIGHT', 'STREAMS']

/** What the keys are made with. */
export const fill: readonly string[][] = [
  ['SET', '{t}str', 'hello world'],
  ['SET', '{t}num', '41'],
  ['HSET', '{t}hash', 'f', '1', 'abc', '2'],
  ['RPUSH', '{t}list', 'a', 'b', 'c', '5'],
  ['SADD', '{t}set', 'a'],
  ['ZADD', '{t}zset', '1', 'a', '2', 'b', '3', 'x'],
  ['XADD', '{t}stream', '1-1', 'f', 'v'],
  ['SETBIT', '{t}bits', '7', '1'],
  ['PFADD', '{t}hll', 'a', 'b'],
  ['GEOADD', '{t}geo', '13.36', '38.11', 'a'],
  ['SET', '{t}bin\xff\x00', 'b\r\n\x00\xff'],
]

/** Not sent at random: they end the server or the connection, or block both for long. */
const notSent =
  /^(SHUTDOWN|DEBUG|MONITOR|SYNC|PSYNC|REPLCONF|REPLICAOF|SLAVEOF|FAILOVER|QUIT|CLIENT (REPLY|PAUSE|KILL|UNBLOCK)|MIGRATE|CONFIG (SET|REWRITE)|MODULE .*|ACL (SETUSER|DELUSER|LOAD|SAVE)|SCRIPT (DEBUG|KILL)|FUNCTION KILL|WAIT|WAITAOF|HELLO|RESET|AUTH|BGSAVE|BGREWRITEAOF|SAVE|CLUSTER .*|SUBSCRIBE|PSUBSCRIBE|SSUBSCRIBE|.*UNSUBSCRIBE|PFSELFTEST|SWAPDB|LATENCY GRAPH|MEMORY DOCTOR)$/

/** The rows of the command table that random commands are made of: all that Redis 7.0 has, but for `notSent`. */
export const sentRows: readonly CommandRow[] = allCommands().filter(
  ({ name, since }) => since === undefined && !notSent.test(name),
)

/** A command with arguments at random, as many as it takes and sometimes not. */
export function randomCommand(row: CommandRow, random: () => number): Buffer[] {
  const least = Math.abs(row.arity)
  const length =
    row.arity > 0 && random() < 0.9
      ? row.arity
      : Math.max(1, least + Math.floor(random() * 4) - (random() < 0.1 ? 1 : 0))
  const args = row.name.split(' ')
  while (args.length < length) {
    const isKeyPlace = row.firstKey === args.length || random() < 0.25
    args.push(isKeyPlace ? pickOf(keyNames, random) : random() < 0.12 ? pickOf(options, random) : pickOf(words, random))
  }
  // A time to live that ends meanwhile may end on one server and not yet on the other.
  const isTimed = /EX|^SET$|^RESTORE$/.test(row.name)
  const shown = args.map((word, index) => (isTimed && index > 0 && /^[15]$/.test(word) ? '100000' : word))
  return shown.map((word, index) => Buffer.from(index === 0 && random() < 0.3 ? word.toLowerCase() : word, 'latin1'))
}

const ofTheirOwn = new Set(
  [
    ...[
      'INFO',
      'TIME',
      'RANDOMKEY',
      'LASTSAVE',
      'HELLO',
      'ROLE',
      'LOLWUT',
      'DUMP',
      'EXPIRETIME',
      'PEXPIRETIME',
      'PTTL',
    ],
    ...[
      'MEMORY STATS',
      'MEMORY MALLOC-STATS',
      'MEMORY USAGE',
      'CLIENT LIST',
      'CLIENT INFO',
      'CLIENT ID',
      'ACL GENPASS',
    ],
    ...['ACL LOG', 'SLOWLOG GET', 'SLOWLOG LEN', 'LATENCY HISTOGRAM', 'LATENCY DOCTOR', 'COMMAND DOCS', 'SRANDMEMBER'],
    ...['SPOP', 'HRANDFIELD', 'ZRANDMEMBER', 'XADD', 'OBJECT IDLETIME', 'OBJECT FREQ', 'CONFIG GET', 'XINFO STREAM'],
    ...['XINFO CONSUMERS', 'XPENDING', 'XCLAIM', 'XAUTOCLAIM', 'FUNCTION STATS', 'CLIENT TRACKINGINFO', 'RESTORE'],
    ...['XRANGE', 'XREVRANGE', 'XREAD', 'XREADGROUP', 'XINFO GROUPS', 'LATENCY LATEST', 'LATENCY RESET', 'SCAN'],
    ...['SSCAN', 'HSCAN', 'ZSCAN'],
  ].flat(),
)
const inAnyOrder = new Set(
  [
    ...['SMEMBERS', 'SDIFF', 'SINTER', 'SUNION', 'HGETALL', 'HKEYS', 'HVALS', 'KEYS'],
    ...['COMMAND', 'COMMAND INFO', 'COMMAND LIST', 'SORT', 'SORT_RO'],
  ].flat(),
)

/**
 * What of a reply must be the same on two servers: all of it; where the server's own hash decides the order, all but the
 * order; where the reply is about the server itself or the moment, its type.
 */
export function comparable(name: string, reply: string): string {
  if (reply.startsWith('-')) return reply
  if (ofTheirOwn.has(name)) return reply[0]!
  return inAnyOrder.has(name) ? reply.split('\r\n').sort().join('\r\n') : reply
}
