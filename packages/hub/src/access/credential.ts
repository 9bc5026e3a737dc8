import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import { matchesAny } from './name-pattern.ts'

/** A user's role: a viewer reads, an operator uses the kill switch and changes rules, an admin also manages tokens. */
export type Role = 'viewer' | 'operator' | 'admin'

export const roles = ['viewer', 'operator', 'admin'] as const

const patterns = z.array(z.string().min(1).max(256)).min(1).max(100)
const secret = z.object({
  /** SHA-256 of the token, in hex. */
  digest: z.string(),
  /** Signs reports that arrive over a third party; derived from the token, which cannot be recovered from it. */
  reportKey: z.string(),
  createdAt: z.number(),
  /** A replaced token is accepted until then. */
  expiresAt: z.number().optional(),
})
const common = {
  id: z.string(),
  name: z.string(),
  /** Tokens that are accepted now, the newest last. */
  secrets: z.array(secret),
  /** Names in certificates that are accepted instead of a token. */
  certificates: z.array(z.string()).default([]),
  createdAt: z.number(),
  createdBy: z.string(),
}

/** A credential as stored: without secrets. */
export const credentialSchema = z.discriminatedUnion('kind', [
  z.object({
    ...common,
    kind: z.literal('app'),
    services: patterns,
    clusters: patterns,
    /** Processes that may report under it at a time. */
    maxProcesses: z.number().int().min(1).optional(),
  }),
  z.object({ ...common, kind: z.literal('person'), role: z.enum(roles), password: z.string().optional() }),
])

export type Credential = z.infer<typeof credentialSchema>
export type AppCredential = Extract<Credential, { kind: 'app' }>
export type PersonCredential = Extract<Credential, { kind: 'person' }>
export type Secret = Credential['secrets'][number]

/** What a sensor is allowed: it may report these services and clusters for as long as the grant is valid. */
export interface AppGrant {
  readonly name: string
  readonly services: readonly string[]
  readonly clusters: readonly string[]
  /** Processes that may report under it at a time. @default maxTokenProcesses */
  readonly maxProcesses?: number | undefined
  readonly isValid: () => boolean
}

/** The grant of a hub without tokens: everyone on the machine may report everything. */
export const anyApp: AppGrant = {
  name: 'local',
  services: ['*'],
  clusters: ['*'],
  maxProcesses: Number.POSITIVE_INFINITY,
  isValid: () => true,
}

/** A sensor named a service or cluster that its token does not cover. */
export class ScopeError extends ApiProblem {
  constructor(message: string) {
    super(403, 'FB_SCOPE_REFUSED', message)
  }
}

export function checkService({ name, services }: AppGrant, serviceId: string): void {
  if (matchesAny(services, serviceId)) return
  throw new ScopeError(
    `the token ${name} is not for the service ${short(serviceId)}; give the sensor its own token, or create one with --service`,
  )
}

export function checkCluster({ name, clusters }: AppGrant, redisClusterId: string): void {
  if (matchesAny(clusters, redisClusterId)) return
  throw new ScopeError(
    `the token ${name} is not for the cluster ${short(redisClusterId)}; give the sensor its own token, or create one with --cluster`,
  )
}

function short(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name)
}
