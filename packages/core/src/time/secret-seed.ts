import type { Runtime } from './runtime.ts'

/**
 * A seed for hashes that outsiders must not predict, with 48 secret bits: the first ones of a new id, which come from
 * the system's cryptographic generator. `random` would not do, because anyone who sees some of its numbers can compute
 * the others.
 */
export function secretSeed({ newId }: Pick<Runtime, 'newId'>): number {
  // A version 4 UUID: 8 digits, a dash, 4 digits, and then the version.
  const id = newId()
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
