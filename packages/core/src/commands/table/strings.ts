import type { CommandGroup } from '../command-group.ts'

/** Commands on strings, bitmaps and HyperLogLogs. */
export const stringCommands: readonly CommandGroup[] = [
  {
    type: 'string',
    rows: [
      ['APPEND', 3, 'write', 'w1'],
      ['DECR', 2, 'write', 'w1'],
      ['DECRBY', 3, 'write', 'w1'],
      ['GET', 2, 'read', 'r1', 'cacheable'],
      ['GETDEL', 2, 'write', 'w1'],
      ['GETEX', -2, 'write', 'w1'],
      ['GETRANGE', 4, 'read', 'r1', 'cacheable'],
      ['GETSET', 3, 'write', 'w1'],
      ['INCR', 2, 'write', 'w1'],
      ['INCRBY', 3, 'write', 'w1'],
      ['INCRBYFLOAT', 3, 'write', 'w1'],
      ['LCS', -3, 'read', 'r1..2'],
      ['MGET', -2, 'read', 'r1..-1', 'cacheable'],
      ['MSET', -3, 'write', 'w1..-1/2'],
      ['MSETNX', -3, 'write', 'w1..-1/2'],
      ['PSETEX', 4, 'write', 'w1'],
      ['SET', -3, 'write', 'w1'],
      ['SETEX', 4, 'write', 'w1'],
      ['SETNX', 3, 'write', 'w1'],
      ['SETRANGE', 4, 'write', 'w1'],
      ['STRLEN', 2, 'read', 'r1', 'cacheable'],
      ['SUBSTR', 4, 'read', 'r1', 'cacheable'],
    ],
  },
  {
    type: 'bitmap',
    rows: [
      ['BITCOUNT', -2, 'read', 'r1', 'cacheable'],
      ['BITFIELD', -2, 'write', 'w?bitfield'],
      ['BITFIELD_RO', -2, 'read', 'r1', 'cacheable'],
      ['BITOP', -4, 'write', 'w2 r3..-1'],
      ['BITPOS', -3, 'read', 'r1', 'cacheable'],
      ['GETBIT', 3, 'read', 'r1', 'cacheable'],
      ['SETBIT', 4, 'write', 'w1'],
    ],
  },
  {
    type: 'hyperloglog',
    rows: [
      ['PFADD', -2, 'write', 'w1'],
      ['PFCOUNT', -2, 'read', 'r1..-1', 'cacheable'],
      ['PFDEBUG', 3, 'write', 'w2', 'admin'],
      ['PFMERGE', -2, 'write', 'w1 r2..-1'],
      ['PFSELFTEST', 1, 'none', '', 'admin'],
    ],
  },
]
