import { expect, test } from 'vitest'
import { encodeCommand } from '../resp/encode-command.ts'
import { RequestParser } from '../resp/request-parser.ts'
import { BufferArgs, ListArgs } from './command-args.ts'
import { makeTable } from './command-group.ts'
import { allCommands, commandOf, commandOfArgs, commandOfBytes } from './command-table.ts'
import { firstKeyIndex, forEachKey, isCacheable, keysOf, mayBlock } from './keys-of.ts'

/** The keys of a typed command, as `k:read`. */
function keys(line: string): string[] {
  const words = line.split(' ').map((word) => (word === '""' ? '' : word))
  const args = new ListArgs(words)
  const row = commandOfArgs(args)!
  const fromList = keysOf(row, args).map(({ index, access }) => `${words[index]}:${access}`)
  const parser = new RequestParser()
  const bytes = encodeCommand(words)
  parser.parse(bytes, 0, bytes.length)
  const buffer = new BufferArgs(parser)
  expect(commandOfArgs(buffer)).toBe(row)
  expect(keysOf(row, buffer).map(({ index, access }) => `${words[index]}:${access}`)).toEqual(fromList)
  expect(firstKeyIndex(row, buffer)).toBe(keysOf(row, args)[0]?.index ?? 0)
  return fromList
}

test('a command is found in any case, from text, from bytes and from the middle of a buffer', () => {
  const get = commandOf('GET')
  expect(get?.name).toBe('GET')
  const buffer = Buffer.from('..gEt..')
  expect([commandOf('get'), commandOf('GeT'), commandOf(Buffer.from('get')), commandOfBytes(buffer, 2, 5)]).toEqual(
    Array(4).fill(get),
  )
  expect([
    commandOf('GETT'),
    commandOf('GE'),
    commandOf(''),
    commandOfBytes(buffer, 2, 6),
    commandOf('constructor'),
  ]).toEqual(Array(5).fill(undefined))
})

test('every command is found by its bytes', () => {
  for (const row of allCommands()) {
    const [top, subcommand = ''] = row.name.toLowerCase().split(' ')
    const bytes = Buffer.from(`${top}${subcommand}`)
    const end = top!.length
    const found = subcommand === '' ? commandOfBytes(bytes, 0, end) : commandOfBytes(bytes, 0, end, end, bytes.length)
    expect(found).toBe(row)
    expect(subcommand === '' ? commandOf(top!) : commandOf(top!, Buffer.from(subcommand))).toBe(row)
  }
})

test('a container returns its subcommand, nothing for an unknown one, and itself without any', () => {
  expect(commandOf('object', 'Encoding')?.name).toBe('OBJECT ENCODING')
  expect(commandOf('OBJECT', 'NOTHING')).toBeUndefined()
  expect(commandOf('OBJECT')?.flags.has('container')).toBe(true)
  expect(commandOf('CLUSTER', 'slot-stats')?.name).toBe('CLUSTER SLOT-STATS')
  expect(commandOf('GET', 'key')?.name).toBe('GET')
})

test.each<[string, string[]]>([
  ['GET k', ['k:read']],
  ['SET k v GET', ['k:write']],
  ['MGET a b c', ['a:read', 'b:read', 'c:read']],
  ['MSET a 1 b 2', ['a:write', 'b:write']],
  ['MSETEX 2 a 1 b 2 EX 5', ['a:write', 'b:write']],
  ['COPY a b', ['a:read', 'b:write']],
  ['RENAME a b', ['a:write', 'b:write']],
  ['SMOVE a b m', ['a:write', 'b:write']],
  ['LMOVE a b LEFT RIGHT', ['a:write', 'b:write']],
  ['BITOP AND d a b', ['d:write', 'a:read', 'b:read']],
  ['BITFIELD k GET u8 0 GET u8 8', ['k:read']],
  ['BITFIELD k GET u8 0 SET u8 8 1', ['k:write']],
  ['PFMERGE d a', ['d:write', 'a:read']],
  ['PFCOUNT a b', ['a:read', 'b:read']],
  ['GETEX k PERSIST', ['k:write']],
  ['GETDEL k', ['k:write']],
  ['LCS a b', ['a:read', 'b:read']],
  ['SORT k', ['k:read']],
  ['SORT k BY store GET # LIMIT 0 1 STORE d', ['k:read', 'd:write']],
  ['SORT_RO k BY w_*', ['k:read']],
  ['GEORADIUS k 1 2 3 km STORE d', ['k:read', 'd:write']],
  ['GEORADIUSBYMEMBER k store 3 km STOREDIST d', ['k:read', 'd:write']],
  ['GEORADIUS k 1 2 3 km STORE a STORE d', ['k:read', 'a:write', 'd:write']],
  ['GEORADIUS k 1 2 3 km STORE storedist STOREDIST d', ['k:read', 'storedist:write', 'd:write']],
  ['GEORADIUS k 1 2 3 km STORE store ASC', ['k:read', 'store:write']],
  ['GEORADIUS k 1 2 3 km STORE', ['k:read']],
  ['GEOSEARCHSTORE d s FROMMEMBER m BYRADIUS 1 km', ['d:write', 's:read']],
  ['EVAL return 2 a b arg', ['a:write', 'b:write']],
  ['EVALSHA_RO abc 1 a x', ['a:read']],
  ['FCALL f 0 x', []],
  ['EVAL return 5 a', []],
  ['EVAL return many a', []],
  ['EVAL return -1 a', []],
  ['ZUNIONSTORE d 2 a b WEIGHTS 1 2', ['d:write', 'a:read', 'b:read']],
  ['SINTERCARD 2 a b LIMIT 3', ['a:read', 'b:read']],
  ['LMPOP 2 a b LEFT', ['a:write', 'b:write']],
  ['BLMPOP 0 2 a b LEFT', ['a:write', 'b:write']],
  ['BZMPOP 0 1 a MIN', ['a:write']],
  ['BLPOP a b 0', ['a:write', 'b:write']],
  ['XREAD COUNT 2 BLOCK 0 STREAMS a b 0 0', ['a:read', 'b:read']],
  ['XREADGROUP GROUP streams c STREAMS a >', ['a:write']],
  ['XGROUP CREATE s g $', ['s:write']],
  ['XINFO STREAM s', ['s:read']],
  ['MEMORY USAGE k', ['k:read']],
  ['OBJECT FREQ k', ['k:read']],
  ['MIGRATE h 1 k 0 5', ['k:write']],
  ['MIGRATE h 1 "" 0 5 AUTH keys KEYS a b', ['a:write', 'b:write']],
  ['JSON.MGET a b $', ['a:read', 'b:read']],
  ['CMS.MERGE d 2 a b', ['d:write', 'a:read', 'b:read']],
  ['PING', []],
  ['SPUBLISH channel m', []],
])('%s', (line, expected) => {
  expect(keys(line)).toEqual(expected)
})

test('an argument list may hold numbers and bytes, with the name apart or first', () => {
  const row = commandOf('EVAL')!
  const list = ['return 1', 2, Buffer.from('a'), 'b', 'x']
  const seen: unknown[] = []
  const args = new ListArgs()
  args.set(list, 'eval')
  forEachKey(row, args, (index, access) => seen.push(args.at(index), access))
  expect(seen).toEqual([Buffer.from('a'), 'write', 'b', 'write'])
  expect(keysOf(row, args.set(['eval', ...list])).map(({ index }) => index)).toEqual([3, 4])
})

test('too few arguments give no keys instead of positions that do not exist', () => {
  for (const row of allCommands()) {
    const words = row.name.split(' ')
    for (let extra = 0; extra < 5; extra++) {
      const list = [...words, ...Array.from({ length: extra }, () => '3')]
      const args = new ListArgs(list)
      for (const { index } of keysOf(row, args)) expect(index, list.join(' ')).toBeLessThan(list.length)
      expect(firstKeyIndex(row, args)).toBeLessThan(list.length || 1)
    }
  }
})

test('replies that depend on one key and the arguments alone are cacheable, others are not', () => {
  const cacheable = (line: string) => {
    const args = new ListArgs(line.split(' '))
    return isCacheable(commandOfArgs(args)!, args)
  }
  const yes = [
    ...[
      'GET k',
      'GETRANGE k 0 1',
      'STRLEN k',
      'MGET k',
      'BITCOUNT k',
      'GETBIT k 1',
      'BITFIELD_RO k GET u8 0',
      'PFCOUNT k',
    ],
    ...['HGETALL k', 'HGET k f', 'HMGET k f g', 'LRANGE k 0 1', 'LPOS k x', 'SMEMBERS k', 'SISMEMBER k m', 'SINTER k'],
    ...['ZRANGE k 0 1', 'ZSCORE k m', 'ZUNION 1 k', 'GEOSEARCH k FROMMEMBER m BYRADIUS 1 km', 'GEOPOS k m'],
    ...['XRANGE k - +', 'XLEN k', 'TYPE k', 'EXISTS k'],
  ]
  const no = [
    ...['MGET a b', 'PFCOUNT a b', 'SINTER a b', 'ZUNION 2 a b', 'EXISTS a a', 'LCS a b', 'SORT_RO k BY w_*', 'GET'],
    ...['SRANDMEMBER k', 'HRANDFIELD k', 'ZRANDMEMBER k', 'SPOP k', 'SCAN 0', 'HSCAN k 0', 'SSCAN k 0', 'ZSCAN k 0'],
    ...[
      'TTL k',
      'PTTL k',
      'EXPIRETIME k',
      'HTTL k FIELDS 1 f',
      'OBJECT IDLETIME k',
      'OBJECT FREQ k',
      'OBJECT ENCODING k',
    ],
    ...[
      'XREAD STREAMS k 0',
      'XPENDING k g',
      'XINFO STREAM k',
      'BLPOP k 0',
      'GETEX k',
      'GETDEL k',
      'SET k v GET',
      'TOUCH k',
    ],
    ...['GEORADIUS k 1 2 3 km', 'EVAL_RO x 1 k', 'FCALL_RO f 1 k', 'DUMP k', 'KEYS *', 'RANDOMKEY', 'TIME', 'PING'],
  ]
  expect(yes.filter((line) => !cacheable(line))).toEqual([])
  expect(no.filter(cacheable)).toEqual([])
})

test('nothing that writes, waits, uses randomness, iterates or reads the clock is cacheable', () => {
  for (const row of allCommands().filter(({ cacheable }) => cacheable)) {
    expect(row.access, row.name).toBe('read')
    expect(
      row.keys.every(({ access }) => access === 'read'),
      row.name,
    ).toBe(true)
    for (const flag of ['blocking', 'random', 'time', 'cursor', 'scripting', 'keyless'] as const) {
      expect(row.flags.has(flag), row.name).toBe(false)
    }
  }
})

test('only commands that really wait are marked as blocking', () => {
  const blocks = (line: string) => {
    const args = new ListArgs(line.split(' '))
    return mayBlock(commandOfArgs(args)!, args)
  }
  const waiting = ['BLPOP k 0', 'XREAD BLOCK 0 STREAMS k $', 'XREADGROUP GROUP g c block 5 STREAMS k >', 'WAIT 1 0']
  const others = ['LPOP k', 'XREAD STREAMS k 0', 'XREAD STREAMS BLOCK 0', 'XREADGROUP GROUP block BLOCK STREAMS k >']
  expect(waiting.filter((line) => !blocks(line))).toEqual([])
  expect(others.filter(blocks)).toEqual([])
})

test('a table with an invalid row is refused when it is built', () => {
  const make = (keySpecs: string) => () => makeTable([{ type: 'string', rows: [['X', 1, 'read', keySpecs]] }])
  expect(make('q1')).toThrow('q1')
  expect(make('r?nothing')).toThrow('nothing')
  expect(() =>
    makeTable([
      {
        type: 'string',
        rows: [
          ['X', 1, 'read'],
          ['X', 1, 'read'],
        ],
      },
    ]),
  ).toThrow('X twice')
})
