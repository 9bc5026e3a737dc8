import { systemRuntime } from '@firebreak/core'
import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { AccessGuard } from '../http/access-guard.ts'
import { answerError } from '../http/answer-error.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { CredentialBook } from './credential-book.ts'
import { fixedCredentials } from './fixed-credentials.ts'
import { PeopleSessions } from './people-sessions.ts'
import { signInRoutes } from './sign-in.ts'

const token = 'anns-token-4711-0815'

async function startSignIn() {
  const [store, runtime] = [new MemoryStore(), systemRuntime]
  const fixed = fixedCredentials({ apps: [], people: [{ name: 'ann', role: 'admin', token }] }, 0)
  const logger = { info() {}, warn() {} }
  const book = new CredentialBook({ store, runtime, logger, audit: async () => {}, fixed })
  const sessions = new PeopleSessions(store, runtime, book)
  const guard = new AccessGuard({ tokens: book, sessions, allowedHosts: [] })
  const app = Fastify()
  app.setErrorHandler(answerError)
  signInRoutes(app, { book, sessions, guard, runtime, logger, maxAttemptsPerMinute: 3, onSignOut() {} })
  return async (remoteAddress: string, given: string) => {
    const payload = { token: given }
    const { statusCode } = await app.inject({ method: 'POST', url: '/v1/session', remoteAddress, payload })
    return statusCode
  }
}

test('guesses are limited by address, and those of IPv6 by their network: one customer has all of it', async () => {
  const signIn = await startSignIn()
  const guesses = async (addressOf: (nth: number) => string) => {
    const answers: number[] = []
    for (let nth = 1; nth <= 4; nth++) answers.push(await signIn(addressOf(nth), `guess-${nth}`))
    return answers
  }
  expect(await guesses(() => '192.0.2.1')).toEqual([401, 401, 401, 429])
  expect(await guesses((nth) => `192.0.2.${1 + nth}`)).toEqual([401, 401, 401, 401])
  expect(await guesses((nth) => `2001:db8:1:2::${nth}`)).toEqual([401, 401, 401, 429])
  expect(await guesses((nth) => `2001:db8:1:${nth + 2}::1`)).toEqual([401, 401, 401, 401])
  expect(await signIn('::ffff:192.0.2.1', token)).toBe(429)
  expect(await signIn('2001:db8:2::1', token)).toBe(200)
})
