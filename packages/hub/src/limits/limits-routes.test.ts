import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePolicyText, RuleService } from '@firebreak/limits/policy'
import { temporaryFolder } from '@firebreak/testkit'
import { type FastifyInstance, fastify } from 'fastify'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { limitsRoutes } from './limits-routes.ts'

const rules = `[rules]
rule : [direct] [ip=10.0.0.0/8] [time=1; count=0] [result=2; return=103]
rule : [count] [act=ask; uid=+] [time=3600; count=2] [result=2; return=201]
rule : [count] [act=ask; uid=+] [time=3600; count=3] [result=2; return=202]
rule : [leak] [act=index; uid=+] [time=60; count=2; erase1=1; erase2=2] [result=2; return=301]
`
let app: FastifyInstance
let service: RuleService
let file: string
beforeEach(async () => {
  file = join(temporaryFolder('limits'), 'policy.conf')
  writeFileSync(file, rules)
  service = new RuleService()
  service.load(parsePolicyText(rules), file)
  app = fastify()
  await app.register(limitsRoutes, {
    service,
    readPolicy: async () => ({ text: (await import('node:fs')).readFileSync(file, 'utf8'), file }),
  })
})
afterEach(() => app.close())

const get = async (url: string) => (await app.inject(`/v1/limits/${url}`)).json()
const post = async (url: string, payload: unknown, type = 'application/json') => {
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const response = await app.inject({
    method: 'POST',
    url: `/v1/limits/${url}`,
    payload: body,
    headers: { 'content-type': type },
  })
  return { status: response.statusCode, body: response.json() }
}

test('browse, update and value', async () => {
  expect(await get('browse?act=ask&uid=1')).toMatchObject({ Ret_type: 1, Ret_code: 0, Version: 1 })
  expect(await get('browse?act=none')).toMatchObject({ Ret_type: 0, Version: 1 })
  expect(await get('browse?ip=10.2.3.4')).toMatchObject({ Ret_type: 2, Ret_code: 103, Str_reason: 'Deny' })
  expect((await post('update?act=ask&uid=1', {})).body).toEqual({ err_no: 0, err_msg: 'OK', Version: 1 })
  expect((await post('update?act=ask&uid=1', {})).body).toMatchObject({ err_no: 0 })
  expect(await get('browse?act=ask&uid=1')).toMatchObject({ Ret_type: 2, Ret_code: 201 })
  expect(await get('value?rule_no=201&act=ask&uid=1')).toMatchObject({ err_no: 0, cache_val: 2 })
  expect((await app.inject('/v1/limits/value?rule_no=999&uid=1')).statusCode).toBe(404)
})

test('browse writes through: checks and counts at once, denied calls not', async () => {
  for (const expected of [1, 1, 2, 2]) {
    expect((await post('browse?act=ask&uid=7&_writeThrough=yes', {})).body).toMatchObject({ Ret_type: expected })
  }
  expect(await get('value?rule_no=201&act=ask&uid=7')).toMatchObject({ cache_val: 2 })
  const { body } = await post('browse', { act: 'ask', uid: 7 })
  expect(body).toMatchObject({ Ret_code: 201 })
  expect((await post('browse', 'act=ask&uid=7', 'application/x-www-form-urlencoded')).body).toMatchObject({
    Ret_code: 201,
  })
})

test('browse_complete gives every rule that is over', async () => {
  for (let call = 0; call < 3; call++) await post('update?act=ask&uid=1', {})
  const all = (await get('browse_complete?act=ask&uid=1&ip=10.0.0.1')) as { Ret_code: number }[]
  expect(all.map(({ Ret_code }) => Ret_code)).toEqual([103, 201, 202])
  expect(await get('browse_complete?act=ask&uid=2')).toMatchObject([{ Ret_type: 1 }])
  expect(await get('browse_complete?act=none')).toMatchObject([{ Ret_type: 0 }])
})

test('multi_browse answers many at once, in both forms', async () => {
  const jobs = encodeURIComponent(
    JSON.stringify([
      { ID: 'a', Arg: 'act=ask&uid=1' },
      { ID: 'b', Arg: 'ip=10.0.0.1' },
    ]),
  )
  expect(await get(`multi_browse?argsJson=${jobs}`)).toMatchObject([
    { ID: 'a', Result: { Ret_type: 1 } },
    { ID: 'b', Result: { Ret_code: 103 } },
  ])
  expect((await post('multi_browse', [{ id: 1, parameters: { ip: '10.0.0.1' } }])).body).toMatchObject([
    { ID: 1, Result: { Ret_type: 2 } },
  ])
  expect((await post('multi_browse', [{ wrong: 1 }])).status).toBe(400)
})

test('multi_browse with one malformed job counts none', async () => {
  const good = { ID: 'a', Arg: 'act=ask&uid=1&_writeThrough=yes' }
  const bad = { ID: 'b', Arg: 'act=ask&uid=1&_writeThrough=perhaps' }
  expect((await post('multi_browse', [good, bad])).status).toBe(400)
  const jobs = encodeURIComponent(JSON.stringify([{ ...good, Arg: 'act=ask&uid=1' }, good]))
  expect((await app.inject(`/v1/limits/multi_browse?argsJson=${jobs}`)).statusCode).toBe(405)
  expect(await get('value?rule_no=201&act=ask&uid=1')).toMatchObject({ cache_val: 0 })
})

test('feedback takes entries back once per request id', async () => {
  for (let call = 0; call < 2; call++) await post('update?act=index&uid=1', {})
  expect(await get('browse?act=index&uid=1')).toMatchObject({ Ret_code: 301 })
  expect((await post('feedback?act=index&uid=1&_feedbackType=erase1&_requestId=r', {})).body).toMatchObject({
    changed: 1,
  })
  expect((await post('feedback?act=index&uid=1&_feedbackType=erase1&_requestId=r', {})).body).toMatchObject({
    changed: 0,
  })
  expect(await get('value?rule_no=301&act=index&uid=1')).toMatchObject({ cache_val: 1 })
  await post('feedback?act=index&uid=1&_feedbackType=erase2', {})
  expect(await get('value?rule_no=301&act=index&uid=1')).toMatchObject({ cache_val: 0 })
})

test('rules with their counts, alive and metrics', async () => {
  await get('browse?ip=10.0.0.1')
  expect(await get('rules')).toMatchObject({ Version: 1, rules: [{ return: 103, applied: 1, over: 1 }, {}, {}, {}] })
  expect(await get('alive')).toMatchObject({ errno: 0 })
  const metrics = (await app.inject('/v1/limits/metrics')).body
  expect(metrics).toContain('firebreak_limit_rule_calls_total{return="103",shadow="false",outcome="over"} 1')
})

test('a reload is versioned; a broken file is refused with file:line and the old policy stays', async () => {
  await post('update?act=ask&uid=1', {})
  writeFileSync(file, rules.replace('count=2', 'count=1'))
  expect((await post('reload', {})).body).toEqual({ Version: 2 })
  expect(await get('browse?act=ask&uid=1')).toMatchObject({ Ret_code: 201, Version: 2 })
  writeFileSync(file, rules.replace('count=2', 'cuont=2'))
  const refused = await post('reload', {})
  expect(refused).toMatchObject({ status: 422, body: { code: 'FB_POLICY_INVALID', line: 3 } })
  expect((refused.body as { detail: string }).detail).toContain(`${file}:3:`)
  expect(await get('browse?act=ask&uid=1')).toMatchObject({ Ret_code: 201, Version: 2 })
})

test('dump, policy, convert, history, diff and rollback', async () => {
  const yaml = (await app.inject('/v1/limits/dump?format=yaml')).body
  expect(yaml).toContain('method: leak')
  const text = (await app.inject('/v1/limits/dump')).body
  expect(text).toContain('rule : [leak] [act=index; uid=+] [time=60; count=2; erase1=1; erase2=2]')
  const converted = await app.inject({
    method: 'POST',
    url: '/v1/limits/convert?to=text',
    payload: yaml,
    headers: { 'content-type': 'application/yaml' },
  })
  expect(converted.body).toBe(text)
  expect((await post('policy', { rules: [] })).body).toEqual({ Version: 2 })
  expect(await get('diff?from=1&to=2')).toMatchObject({ addedRules: [], removedRules: { length: 4 } })
  expect((await post('rollback', { version: 1 })).body).toEqual({ Version: 3 })
  expect(await get('history')).toMatchObject([
    { version: 1, rules: 4, isCurrent: false },
    { version: 2, rules: 0 },
    { version: 3, rules: 4, isCurrent: true, origin: 'rollback to 1' },
  ])
  expect((await post('rollback', { version: 77 })).status).toBe(404)
  const refused = await post('policy', { dicts: { d: { file: '/etc/hostname' } }, rules: [] })
  expect(refused).toMatchObject({ status: 422, body: { detail: expect.stringContaining('not files') } })
})

test('every malformed call is a 400 and never looks like an outage', async () => {
  const refusals = [
    app.inject('/v1/limits/browse?act=ask&uid=1&uid=2'),
    app.inject('/v1/limits/browse_complete?uid=1&uid=2'),
    app.inject('/v1/limits/value?rule_no=201&uid=1&uid=2'),
    app.inject('/v1/limits/browse?uid=1&_writeThrough=true'),
    app.inject('/v1/limits/browse_complete?uid=1&_writeThrough=1'),
    app.inject('/v1/limits/value?uid=1'),
    app.inject('/v1/limits/value?rule_no=x&uid=1'),
    app.inject('/v1/limits/multi_browse'),
    app.inject('/v1/limits/multi_browse?argsJson=%7B'),
    app.inject('/v1/limits/multi_browse?argsJson=%5B1%5D'),
    app.inject('/v1/limits/dump?format=xml'),
    app.inject('/v1/limits/dump?format=text&format=json'),
    app.inject('/v1/limits/diff?from=a'),
    app.inject({ method: 'POST', url: '/v1/limits/policy' }),
    app.inject({ method: 'POST', url: '/v1/limits/convert' }),
    app.inject({ method: 'POST', url: '/v1/limits/rollback' }),
  ]
  for (const refusal of refusals) expect(await refusal).toMatchObject({ statusCode: 400 })
  const bodies: [string, unknown, string?][] = [
    ['browse', { uid: ['1', '2'] }],
    ['browse', { uid: { deep: 1 } }],
    ['browse?uid=1', { uid: '2' }],
    ['browse', { uid: 1, _writeThrough: true }],
    ['browse', '{"uid":'],
    ['update', 'uid=1&uid=2', 'application/x-www-form-urlencoded'],
    ['update', [1, 2]],
    ['update', '"text"'],
    ['feedback', { act: 'index', uid: 1, _feedbackType: 'erase9' }],
    ['multi_browse', [{ Id: 'a' }]],
    ['multi_browse', [{ Id: 'a', Arg: 7 }]],
    ['multi_browse', [{ Id: 'a', Arg: 'uid=1&uid=2' }]],
    ['multi_browse', [{ Id: 'a', Arg: 'uid=1&_writeThrough=YES' }]],
    ['multi_browse', [{ id: 'a', parameters: { uid: ['1', '2'] } }]],
  ]
  for (const [url, body, type] of bodies) expect(await post(url, body, type)).toMatchObject({ status: 400 })
})

test('names that every object inherits are parameters like others', async () => {
  service.load(
    parsePolicyText('[rules]\nrule : [count] [toString=+; __proto__=+] [time=60; count=1] [result=2; return=7]\n'),
  )
  expect(await get('browse?uid=1')).toMatchObject({ Ret_type: 0 })
  const form = 'application/x-www-form-urlencoded'
  expect((await post('update', 'toString=a&__proto__=b', form)).status).toBe(200)
  expect((await post('browse', 'toString=a&__proto__=b', form)).body).toMatchObject({ Ret_code: 7 })
})

test('multi_browse reads the names of fields in any case', async () => {
  const jobs = [
    { Id: 'a', Arg: 'ip=10.0.0.1' },
    { iD: 2, ARG: 'ip=10.0.0.1' },
    { ID: 'c', Parameters: { ip: '10.0.0.1' } },
  ]
  const { body } = await post('multi_browse', jobs)
  expect(body).toMatchObject([{ ID: 'a' }, { ID: 2 }, { ID: 'c' }])
  for (const { Result } of body as { Result: { Ret_code: number } }[]) expect(Result.Ret_code).toBe(103)
})

test('a GET changes nothing', async () => {
  for (const url of ['update?act=ask&uid=1', 'browse?act=ask&uid=1&_writeThrough=yes', 'feedback?act=index&uid=1']) {
    expect((await app.inject(`/v1/limits/${url}`)).statusCode).toBe(405)
  }
  expect(await get('value?rule_no=201&act=ask&uid=1')).toMatchObject({ cache_val: 0 })
  expect((await app.inject('/rule/browse?act=ask&uid=1')).statusCode).toBe(404)
})

test('Koala’s own paths answer where they are asked for, and there a GET counts', async () => {
  const old = fastify()
  await old.register(limitsRoutes, { service, koalaPaths: true })
  const ask = async (url: string) => (await old.inject(url)).json()
  expect(await ask('/rule/update?act=ask&uid=1')).toMatchObject({ err_no: 0 })
  expect(await ask('/rule/browse?act=ask&uid=1&_writeThrough=yes')).toMatchObject({ Ret_type: 1 })
  expect(await ask('/rule/browse?act=ask&uid=1')).toMatchObject({ Ret_code: 201 })
  expect(await ask('/rule/browse_complete?act=ask&uid=1')).toMatchObject([{ Ret_code: 201 }])
  expect(await ask('/rule/value?rule_no=201&act=ask&uid=1')).toMatchObject({ cache_val: 2 })
  expect(await ask('/rule/feedback?act=index&uid=1')).toMatchObject({ err_no: 0 })
  const jobs = encodeURIComponent(JSON.stringify([{ Id: 'a', Arg: 'act=ask&uid=1' }]))
  expect(await ask(`/multi/browse?argsJson=${jobs}`)).toMatchObject([{ ID: 'a', Result: { Ret_code: 201 } }])
  expect(await ask('/monitor/alive')).toEqual({ errno: 0, errmsg: 'OK!' })
  // Elsewhere a GET changes nothing all the same.
  expect((await old.inject('/v1/limits/update?act=ask&uid=1')).statusCode).toBe(405)
  expect((await old.inject('/rule/browse?uid=1&uid=2')).statusCode).toBe(400)
  await old.close()
})
