import { type ProtectOptions, protect, unprotect } from '@firebreak/client'
import { firebreak as expressFirebreak } from '@firebreak/client/express'
import { firebreak as fastifyFirebreak } from '@firebreak/client/fastify'
import { FirebreakModule } from '@firebreak/client/nest'
import { NestFactory } from '@nestjs/core'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, test } from 'vitest'
import 'reflect-metadata'

// Never connects: a wrong call is refused before anything is sent.
const redis = new Redis({ lazyConnect: true })
afterAll(() => redis.disconnect())

const withOptions = (options: unknown) => () => protect(redis, options as ProtectOptions)

describe('wrong options of protect are refused by name', () => {
  test.each([
    ['a typo', { serviceID: 'shop' }, 'there is no option "serviceID"; did you mean serviceId?'],
    ['a typo', { hbus: [] }, 'there is no option "hbus"; did you mean hubs?'],
    ['the name of the flag', { hub: 'http://127.0.0.1:7070' }, 'there is no option "hub"; did you mean hubs?'],
    ['something else', { colour: 'red' }, 'there is no option "colour"; the options are hubs, tables, token, '],
    [
      'one URL instead of a list',
      { hubs: 'http://a:7070, http://b:7070' },
      `option hubs is "http://a:7070, http://b:7070"; it must be an array of strings: hubs: ['http://a:7070', 'http://b:7070']`,
    ],
    ['a number in a string', { leaseMs: '300' }, 'option leaseMs is "300"; it must be a number'],
    ['no string', { redactSecret: 1234567890123456 }, 'option redactSecret is a number; it must be a string'],
    ['no function', { onWarning: 'console' }, 'option onWarning is "console"; it must be a function'],
    ['no object', 'http://127.0.0.1:7070', 'the options are "http://127.0.0.1:7070"; pass an object, as in protect('],
  ])('%s: %j', (_what, options, message) => {
    expect(withOptions(options)).toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID' }))
    expect(withOptions(options)).toThrow(message)
  })

  test('a password in a wrong value is not shown', () => {
    expect(withOptions({ hubs: 'http://user:hidden@a:7070' })).toThrow(/^(?!.*hidden)/)
  })

  test('what is undefined is as good as not given, even if it does not exist', () => {
    const options = { hubs: [], serviceId: 'shop', tableFile: false, token: undefined, hbus: undefined }
    unprotect(protect(redis, options as unknown as ProtectOptions))
  })
})

describe('what is no client is refused with what to do', () => {
  const given = (client: unknown) => () => protect(client as object)
  test.each([
    ['a promise', Promise.resolve(redis), 'a promise is not an ioredis (5, 6), .*; await it first'],
    ['a class', Redis, 'the function Redis is not .*; pass what new Redis\\(…\\) gives'],
    ['options', { client: redis }, 'an object with a client in it is not .*; write protect\\(client, '],
    ['nothing', undefined, 'undefined is not an ioredis'],
  ])('%s', (_what, client, message) => {
    expect(given(client)).toThrow(expect.objectContaining({ code: 'FB_CLIENT_UNSUPPORTED' }))
    expect(given(client)).toThrow(new RegExp(message.replace(' (5, 6)', ' \\(5, 6\\)')))
  })
})

describe('a plug-in that is given the client itself, or none, says what it takes', () => {
  const wrong = 'firebreak: this is a client, not the options; pass { client: redis, hubs: […], serviceId: … }'
  const missing = 'firebreak: option client is missing; pass { client: redis'

  test('Express', () => {
    expect(() => expressFirebreak(redis as never)).toThrow(wrong)
    expect(() => expressFirebreak({ hubs: [] } as never)).toThrow(missing)
    expect(() => expressFirebreak(undefined as never)).toThrow('firebreak: the options are undefined; pass { client')
  })

  test('Fastify, whose own options are let through', async () => {
    // Fastify passes a copy of what it is given.
    await expect(Fastify().register(fastifyFirebreak, redis as never)).rejects.toThrow(missing)
    await expect(Fastify().register(fastifyFirebreak as never)).rejects.toThrow(missing)
    const app = Fastify()
    const own = { client: redis, hubs: [], serviceId: 'shop', tableFile: false as const }
    await app.register(fastifyFirebreak, { ...own, prefix: '/shop', logLevel: 'error' })
    await app.close()
  })

  test('Nest', async () => {
    const started = NestFactory.create(FirebreakModule.forRoot(redis as never), { logger: false, abortOnError: false })
    await expect(started).rejects.toThrow(wrong)
  })
})
