import { reportKeyOf } from '@firebreak/core/node'
import { HubConfigError } from '../errors.ts'
import type { Credential, Role } from './credential.ts'
import { digestOf, tokenProblem } from './secrets.ts'

/** Who may call the hub, as configured in a file or by an embedding program; `firebreak token create` adds others. */
export interface HubTokens {
  readonly apps: readonly AppToken[]
  readonly people: readonly PersonToken[]
}

interface FixedToken {
  readonly name: string
  /** At least 16 characters. @default none: identified by a certificate, or for users by the user header */
  readonly token?: string
  /** A name in the caller's certificate that is accepted instead of a token; needs `tls.caFile`. @default none */
  readonly certificate?: string
}

/** A sensor's token. */
export interface AppToken extends FixedToken {
  /** The services that it may report for; `*` matches any characters. @default all */
  readonly services?: readonly string[]
  /** The clusters that it may report. @default all */
  readonly clusters?: readonly string[]
  /** Processes that may report under it at a time. @default maxTokenProcesses of the hub */
  readonly maxProcesses?: number
}

export interface PersonToken extends FixedToken {
  readonly role: Role
}

/** The same in the book's form. Refuses placeholders, and duplicate tokens or names. */
export function fixedCredentials({ apps, people }: HubTokens, now: number): Credential[] {
  const credentials = [
    ...apps.map(
      (app, index): Credential => ({
        ...common(app, 'app', `apps[${index}]`, now),
        kind: 'app',
        services: [...(app.services ?? ['*'])],
        clusters: [...(app.clusters ?? ['*'])],
        maxProcesses: app.maxProcesses,
      }),
    ),
    ...people.map(
      (person, index): Credential => ({
        ...common(person, 'person', `people[${index}]`, now),
        kind: 'person',
        role: person.role,
      }),
    ),
  ]
  refuseDoubles(credentials)
  return credentials
}

function common({ name, token, certificate }: FixedToken, kind: string, field: string, now: number) {
  const problem = token === undefined ? undefined : tokenProblem(token)
  // The token itself must not be in the sentence.
  if (problem !== undefined) throw new HubConfigError(`${field}.token`, `${field}.token (${name}) ${problem}`)
  return {
    id: `file:${kind}:${name}`,
    name,
    secrets: token === undefined ? [] : [{ digest: digestOf(token), reportKey: reportKeyOf(token), createdAt: now }],
    certificates: certificate === undefined ? [] : [certificate],
    createdAt: now,
    createdBy: 'file',
  }
}

function refuseDoubles(credentials: readonly Credential[]): void {
  const seen = new Map<string, string>()
  for (const { id, kind, name, secrets, certificates } of credentials) {
    const marks = [id, ...secrets.map(({ digest }) => digest), ...certificates.map((one) => `certificate ${one}`)]
    for (const mark of marks) {
      const other = seen.get(mark)
      if (other !== undefined) {
        const what =
          mark === id ? 'the same name' : mark.startsWith('certificate') ? 'the same certificate' : 'the same token'
        throw new HubConfigError('tokens', `${kind} ${name} has ${what} as ${other}: each needs its own`)
      }
      seen.set(mark, `${kind} ${name}`)
    }
  }
}
