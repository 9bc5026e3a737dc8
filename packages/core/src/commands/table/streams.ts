import type { CommandGroup } from '../command-group.ts'

/** Commands on streams. */
export const streamCommands: readonly CommandGroup[] = [
  {
    type: 'stream',
    rows: [
      ['XACK', -4, 'write', 'w1'],
      ['XADD', -5, 'write', 'w1', 'time'],
      ['XAUTOCLAIM', -6, 'write', 'w1', 'time', 'cursor'],
      ['XCLAIM', -6, 'write', 'w1', 'time'],
      ['XDEL', -3, 'write', 'w1'],
      ['XGROUP', -2, 'none', '', 'container'],
      ['XGROUP CREATE', -5, 'write', 'w2'],
      ['XGROUP CREATECONSUMER', 5, 'write', 'w2'],
      ['XGROUP DELCONSUMER', 5, 'write', 'w2'],
      ['XGROUP DESTROY', 4, 'write', 'w2'],
      ['XGROUP HELP', 2, 'none'],
      ['XGROUP SETID', -5, 'write', 'w2'],
      ['XINFO', -2, 'none', '', 'container'],
      ['XINFO CONSUMERS', 4, 'read', 'r2', 'time'],
      ['XINFO GROUPS', 3, 'read', 'r2'],
      ['XINFO HELP', 2, 'none'],
      ['XINFO STREAM', -3, 'read', 'r2', 'time'],
      ['XLEN', 2, 'read', 'r1', 'cacheable'],
      ['XPENDING', -3, 'read', 'r1', 'time'],
      ['XRANGE', -4, 'read', 'r1', 'cacheable'],
      ['XREAD', -4, 'read', 'r:STREAMS@1%', 'blocking', 'movable'],
      ['XREADGROUP', -7, 'write', 'w:STREAMS@4%', 'blocking', 'movable'],
      ['XREVRANGE', -4, 'read', 'r1', 'cacheable'],
      ['XSETID', -3, 'write', 'w1'],
      ['XTRIM', -4, 'write', 'w1'],
    ],
  },
]
