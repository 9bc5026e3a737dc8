import type { RetrySteps } from '@firebreak/core/settings'

const endless = { tries: Number.POSITIVE_INFINITY, deadlineMs: Number.POSITIVE_INFINITY, atEnd: 'alarm' } as const

/** The steps of a source that can fail, and their default retry policies. */
export const sourceRetrySteps = {
  replica: {
    what: 'connecting a replica stream',
    policy: { ...endless, firstMs: 50, mostMs: 2000 },
    ends: ['alarm', 'stop'],
  },
  aof: {
    what: 'reading an append-only file',
    policy: { ...endless, firstMs: 100, mostMs: 100 },
    ends: ['alarm', 'stop'],
  },
  binlog: {
    what: 'connecting to a binlog',
    policy: { ...endless, firstMs: 100, mostMs: 5000 },
    ends: ['alarm', 'stop'],
  },
  redis: {
    what: 'applying a binlog row to Redis, including the loader',
    policy: { ...endless, firstMs: 100, mostMs: 5000 },
    ends: ['alarm', 'drop', 'stop'],
  },
} as const satisfies RetrySteps
