import { z } from 'zod'
import type { ApiRoute } from '../http/api-route.ts'
import { roles } from './credential.ts'
import type { CredentialBook, NewCredential } from './credential-book.ts'
import { hashPassword } from './secrets.ts'

const names = z.array(z.string().min(1).max(256)).min(1).max(100)
const name = z.string().regex(/^[\w.@:-]{1,64}$/, 'a name must be 1 to 64 letters, digits or . _ - @ :')
const certificates = z.array(z.string().min(1).max(256)).max(20).default([])
const maxProcesses = z.number().int().min(1).max(1e6).optional()
export const newCredentialBody = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('app'), name, services: names, clusters: names, certificates, maxProcesses }),
  z.strictObject({
    kind: z.literal('person'),
    name,
    role: z.enum(roles),
    certificates,
    password: z.string().min(12, 'a password must be at least 12 characters').max(256).optional(),
  }),
])
const dayMs = 86_400_000
const rotateBody = z.strictObject({
  graceMs: z
    .number()
    .int()
    .min(0)
    .max(90 * dayMs)
    .default(dayMs),
})

/** A new credential as the book expects it, with the password hashed. */
export async function toNewCredential(body: z.infer<typeof newCredentialBody>): Promise<NewCredential> {
  if (body.kind === 'app') return body
  const { password, ...rest } = body
  return password === undefined ? rest : { ...rest, password: await hashPassword(password) }
}

/** Admins create, replace and revoke tokens; the secret itself is shown once. */
export function tokenRoutes(book: CredentialBook): ApiRoute[] {
  const token = { path: '/v1/tokens/:id', role: 'admin' } as const
  return [
    {
      method: 'GET',
      path: '/v1/tokens',
      summary: 'Who has a token, what it is for, and when it was last used; without the secrets',
      role: 'admin',
      answer: '{ tokens: CredentialView[] }',
      handle: () => ({ tokens: book.list() }),
    },
    {
      method: 'POST',
      path: '/v1/tokens',
      summary: 'Creates a token; it is shown only in this answer',
      role: 'admin',
      body: newCredentialBody,
      answer: '{ token?: string, credential: CredentialView }',
      status: 201,
      handle: async ({ body, caller }) =>
        book.create(await toNewCredential(body as z.infer<typeof newCredentialBody>), caller.who),
    },
    {
      ...token,
      method: 'POST',
      path: '/v1/tokens/:id/rotate',
      summary: 'Replaces a token; the old one is accepted for another graceMs',
      body: rotateBody,
      answer: '{ token?: string, credential: CredentialView }',
      handle: ({ params, body, caller }) =>
        book.rotate(params['id']!, (body as z.infer<typeof rotateBody>).graceMs, caller.who),
    },
    {
      ...token,
      method: 'DELETE',
      summary: 'Revokes a token at once and closes its connections',
      answer: 'nothing',
      status: 204,
      handle: ({ params, caller }) => book.revoke(params['id']!, caller.who),
    },
  ]
}
