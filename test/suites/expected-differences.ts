import type { Expected } from './compare-runs.ts'

/** Tests of known suites that may end differently under Firebreak, and why. Anything not listed is a bug. */
export const expectedDifferences: readonly Expected[] = [
  {
    suite: 'ioredis',
    ways: ['cache', 'copies', 'limits'],
    tests: /^disconnection should clear all timers on /,
    atMost: 4,
    reason: 'compares how often the process called setInterval and clearInterval: the shield has a timer of its own',
  },
  {
    suite: 'ioredis',
    ways: ['cache', 'copies'],
    tests:
      /^autoPipelining for (single node|cluster) should (automatic add commands|support buffer commands|correctly track)/,
    atMost: 6,
    reason:
      "looks at the queue's length after a get: that of a hot key is loaded at once and never stands in the queue",
  },
  {
    suite: 'ioredis',
    ways: ['cache', 'copies'],
    tests:
      /^connection (sync connection ignores connectTimeout when connection established|connectTimeout should ignore timeout if connect)/,
    atMost: 2,
    reason: "spies on every socket's setTimeout in the process: the shield's own connection is one of them",
  },
  {
    suite: 'ioredis',
    ways: ['cache', 'copies'],
    tests: /^Redis Connection Socket Timeout does not apply a closed connection timeout/,
    atMost: 1,
    reason: "counts the connections that a server got: the shield's own are among them",
  },
  {
    suite: 'ioredis',
    ways: ['cache', 'copies', 'proxy'],
    tests:
      /^(scripting does not fallback to EVAL in (regular|manual) transaction|scripting should try to use EVALSHA and fallback|monitor )/,
    atMost: 8,
    reason:
      "reads the commands of all clients with MONITOR: those of the shield's and the proxy's own connections are among them",
  },
  {
    suite: 'ioredis',
    ways: ['cache', 'copies'],
    tests: /^commandTimeout does not leak timers for commands in offline queue/,
    atMost: 1,
    reason: "counts the process' timers under a clock of its own: the shield's are among them",
  },
  {
    suite: 'ioredis',
    ways: ['copies'],
    tests: /^(dbsize|scan) /,
    atMost: 6,
    reason:
      "DBSIZE counts the copies of hot keys, and SCAN's cursor goes through them: the pages alone are without them",
  },
  {
    suite: 'ioredis',
    ways: ['cache', 'copies'],
    tests: /^NAT works for moved$/,
    atMost: 1,
    reason:
      'its mock sends MOVED to a node that its own CLUSTER SLOTS does not have: the shield asks for the slots once more, and that node is forgotten',
  },
]
