import type { RetrySteps } from '@firebreak/core/settings'

/** The step of the consistency chain that a shield performs itself, and its default retry policy. */
export const shieldRetrySteps = {
  tracking: {
    what: "the watcher's connection to a node of Redis",
    policy: {
      tries: Number.POSITIVE_INFINITY,
      firstMs: 20,
      mostMs: 400,
      deadlineMs: Number.POSITIVE_INFINITY,
      atEnd: 'alarm',
    },
    ends: ['alarm', 'stop'],
  },
} as const satisfies RetrySteps
