import type { CommandGroup } from '../command-group.ts'

/** Commands added after Redis 7.0, in Redis or Valkey; `since` names the first version that has them. */
export const newerCommands: readonly CommandGroup[] = [
  {
    type: 'none',
    since: '7.2',
    rows: [
      ['CLIENT NO-TOUCH', 3, 'none', '', 'connection'],
      ['CLIENT SETINFO', 4, 'none', '', 'connection'],
      ['CLUSTER MYSHARDID', 2, 'none'],
      ['WAITAOF', 4, 'none', '', 'blocking', 'connection'],
    ],
  },
  {
    type: 'hash',
    since: '7.4',
    rows: [
      ['HEXPIRE', -6, 'write', 'w1'],
      ['HEXPIREAT', -6, 'write', 'w1'],
      ['HEXPIRETIME', -5, 'read', 'r1'],
      ['HPERSIST', -5, 'write', 'w1'],
      ['HPEXPIRE', -6, 'write', 'w1'],
      ['HPEXPIREAT', -6, 'write', 'w1'],
      ['HPEXPIRETIME', -5, 'read', 'r1'],
      ['HPTTL', -5, 'read', 'r1', 'time'],
      ['HTTL', -5, 'read', 'r1', 'time'],
    ],
  },
  {
    type: 'hash',
    since: '8.0',
    rows: [
      ['HGETDEL', -5, 'write', 'w1'],
      ['HGETEX', -5, 'write', 'w1'],
      ['HSETEX', -6, 'write', 'w1'],
    ],
  },
  {
    type: 'vectorset',
    since: '8.0',
    rows: [
      ['VADD', -5, 'write', 'w1'],
      ['VCARD', 2, 'read', 'r1'],
      ['VDIM', 2, 'read', 'r1'],
      ['VEMB', -3, 'read', 'r1'],
      ['VGETATTR', 3, 'read', 'r1'],
      ['VINFO', 2, 'read', 'r1'],
      ['VLINKS', -3, 'read', 'r1'],
      ['VRANDMEMBER', -2, 'read', 'r1', 'random'],
      ['VREM', 3, 'write', 'w1'],
      ['VSETATTR', 4, 'write', 'w1'],
      ['VSIM', -4, 'read', 'r1', 'random'],
    ],
  },
  { type: 'vectorset', since: '8.2', rows: [['VISMEMBER', 3, 'read', 'r1']] },
  { type: 'vectorset', since: '8.4', rows: [['VRANGE', -4, 'read', 'r1']] },
  {
    type: 'stream',
    since: '8.2',
    rows: [
      ['XACKDEL', -6, 'write', 'w1'],
      ['XDELEX', -5, 'write', 'w1'],
    ],
  },
  { type: 'stream', since: '8.6', rows: [['XCFGSET', -2, 'write', 'w1']] },
  {
    type: 'string',
    since: '8.4',
    rows: [
      ['DELEX', -2, 'write', 'w1'],
      ['DIGEST', 2, 'read', 'r1', 'cacheable'],
      ['MSETEX', -4, 'write', 'w#1/2', 'movable'],
    ],
  },
  { type: 'none', since: '8.4', rows: [['CLUSTER MIGRATION', -4, 'none', '', 'admin']] },
  {
    type: 'none',
    since: '8.6',
    rows: [
      ['HOTKEYS', -2, 'none', '', 'container'],
      ['HOTKEYS GET', 2, 'none', '', 'admin'],
      ['HOTKEYS RESET', 2, 'none', '', 'admin'],
      ['HOTKEYS START', -2, 'none', '', 'admin'],
      ['HOTKEYS STOP', 2, 'none', '', 'admin'],
    ],
  },
  {
    type: 'none',
    since: 'valkey 8.0',
    rows: [
      ['CLIENT CAPA', -3, 'none', '', 'connection'],
      ['CLUSTER SLOT-STATS', -4, 'none'],
      ['SCRIPT SHOW', 3, 'none', '', 'scripting'],
    ],
  },
  {
    type: 'none',
    since: 'valkey 8.1',
    rows: [
      ['CLIENT IMPORT-SOURCE', 3, 'none', '', 'connection'],
      ['COMMANDLOG', -2, 'none', '', 'container'],
      ['COMMANDLOG GET', 4, 'none', '', 'admin'],
      ['COMMANDLOG HELP', 2, 'none'],
      ['COMMANDLOG LEN', 3, 'none', '', 'admin'],
      ['COMMANDLOG RESET', 3, 'none', '', 'admin'],
    ],
  },
  { type: 'string', since: 'valkey 9.0', rows: [['DELIFEQ', 3, 'write', 'w1']] },
  { type: 'generic', since: 'valkey 9.1', rows: [['CLUSTERSCAN', -2, 'read', '', 'cursor', 'keyless', 'sharded']] },
  {
    type: 'none',
    since: 'valkey 9.0',
    rows: [
      ['CLUSTER CANCELSLOTMIGRATIONS', 2, 'none', '', 'admin'],
      ['CLUSTER FLUSHSLOT', -3, 'write', '', 'admin', 'keyless'],
      ['CLUSTER GETSLOTMIGRATIONS', 2, 'none', '', 'admin'],
      ['CLUSTER MIGRATESLOTS', -4, 'none', '', 'admin'],
      ['CLUSTER SYNCSLOTS', -3, 'none', '', 'admin'],
    ],
  },
]
