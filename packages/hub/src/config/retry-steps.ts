import {
  describePolicy,
  type RetryChoices,
  type RetryPolicy,
  type RetrySteps,
  resolveRetry,
} from '@firebreak/core/settings'
import { sourceRetrySteps } from '@firebreak/watch'
import { HubConfigError } from '../errors.ts'

const unbounded = { tries: Number.POSITIVE_INFINITY, deadlineMs: Number.POSITIVE_INFINITY } as const

/**
 * The steps from a change to the caches that hold it, as far as the hub performs them, and their default retry
 * policies.
 */
export const hubRetrySteps = {
  ...sourceRetrySteps,
  positions: {
    what: 'saving the position of a source',
    policy: { ...unbounded, firstMs: 1000, mostMs: 1000, atEnd: 'alarm' },
    ends: ['alarm', 'drop'],
  },
  relay: {
    what: 'exchanging changes with the other hubs',
    policy: { ...unbounded, firstMs: 1000, mostMs: 1000, atEnd: 'alarm' },
    ends: ['alarm', 'drop'],
  },
  webhook: {
    what: 'sending a notice to a webhook or a route',
    policy: { ...unbounded, tries: 5, firstMs: 1000, mostMs: 16_000, atEnd: 'drop' },
    ends: ['drop', 'alarm'],
  },
} as const satisfies RetrySteps

export type HubRetryStep = keyof typeof hubRetrySteps
/** User-defined policies, by step. */
export type HubRetryChoices = RetryChoices<HubRetryStep>
export type HubRetry = Readonly<Record<HubRetryStep, RetryPolicy>>

export const retryFailure = (field: string, message: string) => new HubConfigError(field, message)

/** Every step's policy. */
export function resolveHubRetry(choices: HubRetryChoices = {}): HubRetry {
  return resolveRetry(hubRetrySteps, choices, retryFailure)
}

/** The defaults of all steps, for the help. */
export function describeHubRetry(): string {
  return Object.entries(hubRetrySteps)
    .map(([name, { policy }]) => `${name}: ${describePolicy(policy)}`)
    .join('; ')
}
