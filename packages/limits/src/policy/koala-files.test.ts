import { systemRuntime } from '@firebreak/core'
import { expect, test } from 'vitest'
import { parsePolicy, RuleService, writePolicyDocument, writePolicyText } from './index.ts'
import { MemoryRuleStore } from './memory-rule-store.ts'
import { parsePolicyText } from './parse-policy.ts'

function serve(rules: string, dicts: Record<string, string> = {}) {
  const clock = { at: Date.UTC(2026, 4, 5), now: () => clock.at }
  const service = new RuleService({
    store: new MemoryRuleStore({ runtime: { ...systemRuntime, clock, wallClock: clock } }),
  })
  const heading = Object.keys(dicts).map((name) => `${name} : ${name}`)
  const text = ['[dicts]', ...heading, '[rules]', ...rules.split('\n')].join('\n')
  const policy = parsePolicyText(text, 'p.conf', (path) => dicts[path]!)
  service.load(policy)
  const through = async (parameters: Record<string, string>) => !(await service.browse(parameters, true)).isDenied
  const code = async (parameters: Record<string, string>) => (await service.browse(parameters)).row['Ret_code']
  return { clock, service, policy, through, code }
}

test.each([
  { base: 3, count: 1, admitted: 4 },
  { base: 1, count: 1, admitted: 2 },
  { base: 2, count: 3, admitted: 5 },
])('base=$base, count=$count admits $admitted, then denies', async ({ base, count, admitted }) => {
  const { through } = serve(`rule : [base] [uid=+] [base=${base}; time=3600; count=${count}] [result=2; return=1]`)
  const answers: boolean[] = []
  for (let call = 0; call < admitted + 2; call++) answers.push(await through({ uid: '1' }))
  expect(answers).toEqual([...Array(admitted).fill(true), false, false])
})

test('rules with the same return value count separately, even if they differ in nothing else', async () => {
  const { service, through, code } = serve(`rule : [count] [uid=+] [time=60; count=2] [result=2; return=1]
rule : [count] [uid=+] [time=60; count=3] [result=2; return=1]
rule : [count] [uid=+] [time=60; count=3] [result=2; return=1]`)
  expect(await through({ uid: '1' })).toBe(true)
  expect(await code({ uid: '1' })).toBe(0)
  expect(await through({ uid: '1' })).toBe(true)
  expect(await code({ uid: '1' })).toBe(1)
  expect(service.rules().map(({ over }) => over)).toEqual([1, 0, 0])
  // The value for a number belongs to its first rule.
  expect(await service.value(1, { uid: '1' })).toMatchObject({ used: 2 })
})

test('return=0 is a number like any other', async () => {
  const { through, service } = serve('rule : [count] [uid=+] [time=60; count=1] [result=2; return=0]')
  expect([await through({ uid: '1' }), await through({ uid: '1' })]).toEqual([true, false])
  expect(await service.value(0, { uid: '1' })).toMatchObject({ used: 1 })
})

test('uid!=+ applies to whoever gives a uid, as in Koala', async () => {
  const { code } = serve('rule : [direct] [uid!=+] [time=1; count=0] [result=2; return=5]')
  expect([await code({ uid: 'a' }), await code({ uid: '+' }), await code({ uid: '' }), await code({})]).toEqual([
    5, 5, 0, 0,
  ])
})

test('uid!=1-10 applies to numbers outside of the range and not to text', async () => {
  const { code } = serve(`rule : [direct] [uid!=1-10] [time=1; count=0] [result=2; return=5]
rule : [direct] [ip!=10.0.0.*] [time=1; count=0] [result=2; return=6]
rule : [direct] [tag!=1-10,vip] [time=1; count=0] [result=2; return=7]`)
  expect([await code({ uid: '11' }), await code({ uid: '3' }), await code({ uid: 'abc' })]).toEqual([5, 0, 0])
  expect([await code({ ip: '10.0.1.1' }), await code({ ip: '10.0.0.1' }), await code({ ip: 'here' })]).toEqual([
    6, 0, 0,
  ])
  // If texts are listed, they are distinguished.
  expect([await code({ tag: 'vip' }), await code({ tag: 'other' }), await code({ tag: '4' })]).toEqual([0, 7, 0])
})

test('two bounds on one key are a range, in every form of a policy', async () => {
  const { code, policy } = serve('rule : [direct] [uid>10; uid<20] [time=1; count=0] [result=2; return=5]')
  expect([await code({ uid: '10' }), await code({ uid: '15' }), await code({ uid: '20' })]).toEqual([0, 5, 0])
  for (const text of [
    writePolicyText(policy),
    writePolicyDocument(policy, 'yaml'),
    writePolicyDocument(policy, 'json'),
  ]) {
    expect(parsePolicy(text).rules).toEqual(policy.rules)
  }
  for (const conditions of ['uid>1; uid>2', 'uid=1; uid=2', 'uid=+; uid<2', 'uid>1; uid<5; uid<7']) {
    const rule = `[rules]\nrule : [direct] [${conditions}] [time=1; count=0] [result=2; return=5]`
    expect(() => parsePolicyText(rule)).toThrow(/uid appears in two conditions/)
  }
  const counted = serve('rule : [count] [uid>10; uid<20] [time=60; count=1] [result=2; return=5]')
  expect([await counted.through({ uid: '11' }), await counted.through({ uid: '12' })]).toEqual([true, true])
  expect(await counted.through({ uid: '11' })).toBe(false)
})

test('section names are not case-sensitive', () => {
  const text = '[RULES]\nrule : [direct] [uid=1] [time=1; count=0] [result=4; return=5]\n[Result]\n4 : {"Ret_type":4}\n'
  expect(parsePolicyText(text)).toMatchObject({ rules: [{ returnCode: 5 }], results: { 4: { Ret_type: 4 } } })
})

test.each(['toString', '__proto__', 'constructor', 'hasOwnProperty'])('a dict may be called %s', async (name) => {
  const rule = `rule : [direct] [uid @ ${name}] [time=1; count=0] [result=2; return=5]`
  const { code, policy, service } = serve(rule, { [name]: 'a\nb' })
  expect([await code({ uid: 'a' }), await code({ uid: 'c' })]).toEqual([5, 0])
  expect(Object.keys(policy.dicts)).toEqual([name])
  expect(service.load(policy)).toBe(2)
  expect(service.diff(1, 2).changedDicts).toEqual([])
  const yaml = `rules: [{ return: 5, method: direct, when: { uid: { in: "${name}" } }, result: 2 }]`
  // A missing one is reported when the policy is loaded, not with every call.
  expect(() => parsePolicyText(`[rules]\n${rule}`)).toThrow(/is not in \[dicts\]/)
  expect(() => parsePolicy(yaml)).toThrow(/is not in \[dicts\]/)
  const document = parsePolicy(`dicts: { "${name}": [a, b] }\n${yaml}`)
  expect(document.dicts[name]).toEqual({ file: undefined, values: ['a', 'b'] })
})

test('a rule whose limit changed keeps what was counted; one whose time changed starts again', async () => {
  const { service, through, code } = serve('rule : [count] [uid=+] [time=60; count=5] [result=2; return=5]')
  for (let call = 0; call < 3; call++) await through({ uid: '1' })
  service.load(parsePolicyText('[rules]\nrule : [count] [uid=+] [time=60; count=3] [result=2; return=5]'))
  expect(await code({ uid: '1' })).toBe(5)
  service.load(parsePolicyText('[rules]\nrule : [count] [uid=+] [time=61; count=3] [result=2; return=5]'))
  expect(await code({ uid: '1' })).toBe(0)
})
