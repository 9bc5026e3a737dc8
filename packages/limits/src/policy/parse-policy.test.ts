import { describe, expect, test } from 'vitest'
import { compileCondition, parseCondition } from './condition.ts'
import { parsePolicyText, writePolicyText } from './parse-policy.ts'
import { parsePolicy, parsePolicyDocument, writePolicyDocument } from './policy-document.ts'

const sample = `# a policy
[dicts]
white : conf/white.dat

[rules]
# lists first
rule : [direct] [uid @ white] [time=1; count=0;] [result=1; return=101]
rule: [count] [act=add_comment; video_id=+; uid=+;] [time=86400; count=1;] [result=2; return=400]
rule : [base] [act=ask;ip=+;] [base=50; time=10; count=1;] [result=2; return=203]
rule : [leak] [act=index,home{~};ip!=10.0.24.*,192.168.0.1-192.168.0.255] [time=100; count=10; erase1=2; erase2=4] [result=3; return=1201]
rule : [count] [qid>200000000; level<10; uid !@ white] [time=60; count=10] [result=2; return=112; shadow=1]

[result]
3 : { "Ret_type":3, "Ret_code" : 0, "Err_no":20, "Str_reason":"Vcode", "Need_vcode":1, "Vcode_len":4 }
`
const read = () => '1\n2\n'

describe('conditions', () => {
  const cases: [condition: string, fits: string[], fitsNot: string[]][] = [
    ['k=a,b', ['a', 'b'], ['c', 'ab', 'A']],
    ['k!=a,b', ['c'], ['a', 'b']],
    ['k=+', ['anything', '0', '+'], []],
    ['k=a,b{~}', ['a', 'b'], ['c', 'b{~}']],
    ['k=1-100', ['1', '50', '100'], ['0', '101', '5.5', 'x']],
    ['k=10,20-30', ['10', '20', '30'], ['11', '31']],
    ['k!=1-100', ['0', '101'], ['1', '100']],
    ['k=192.168.0.*', ['192.168.0.0', '192.168.0.255'], ['192.168.1.0', 'x']],
    ['k=192.168.*.*', ['192.168.7.9'], ['192.169.0.0']],
    ['k=10.0.0.5-10.0.1.2,10.9.9.9', ['10.0.0.5', '10.0.0.255', '10.0.1.2', '10.9.9.9'], ['10.0.0.4', '10.0.1.3']],
    ['k=10.0.0.0/8', ['10.255.0.1', '::ffff:10.1.2.3'], ['11.0.0.0', '::1']],
    ['k=2001:db8::/32', ['2001:db8::1', '2001:0DB8:ffff::'], ['2001:db9::', '32.1.13.184']],
    ['k=2001:db8::1', ['2001:db8:0:0::1'], ['2001:db8::2']],
    ['k=fe80::1-fe80::9', ['fe80::5', 'fe80::9%eth0'], ['fe80::a']],
    ['k<10', ['9', '-5'], ['10', 'x', '']],
    ['k>10', ['11'], ['10', '1e9']],
    ['k=add-comment', ['add-comment'], ['add']],
  ]
  test.each(cases)('%s', (text, fits, fitsNot) => {
    const matches = compileCondition(parseCondition(text), new Map())
    expect(fits.filter((value) => !matches(value))).toEqual([])
    expect(fitsNot.filter((value) => matches(value))).toEqual([])
  })

  test('operators k @ dict and k !@ dict', () => {
    const dicts = new Map([['d', (value: string) => value === 'x']])
    expect(compileCondition(parseCondition('k @ d'), dicts)('x')).toBe(true)
    expect(compileCondition(parseCondition('k !@ d'), dicts)('x')).toBe(false)
    expect(compileCondition(parseCondition('k!@d'), dicts)('y')).toBe(true)
  })
})

test('a policy file is read, and survives every conversion unchanged', () => {
  const policy = parsePolicyText(sample, 'koala.conf', read)
  expect(policy.timeZone).toBe('Asia/Shanghai')
  expect(policy.rules.map(({ returnCode }) => returnCode)).toEqual([101, 400, 203, 1201, 112])
  expect(policy.rules[3]).toMatchObject({
    method: 'leak',
    timeSeconds: 100,
    count: 10,
    erase1: 2,
    erase2: 4,
    result: 3,
  })
  expect(policy.rules[3]!.conditions[0]).toEqual({ key: 'act', op: 'is', values: ['index', 'home'], together: true })
  expect(policy.dicts['white']).toEqual({ file: 'conf/white.dat', values: ['1', '2'] })
  expect(parsePolicyText(writePolicyText(policy), 'x', read)).toEqual(policy)
  expect(parsePolicyDocument(writePolicyDocument(policy), 'x.yaml', read)).toEqual(policy)
  expect(parsePolicy(writePolicyDocument(policy, 'json'), 'x', read)).toEqual(policy)
  expect(parsePolicy(sample, 'x', read)).toEqual(policy)
})

test.each(['', ' \n\n', '\ufeff', '# only comments\n'])(
  'an empty policy (%j) is refused, not one without rules',
  (text) => {
    expect(() => parsePolicy(text, 'rules.conf')).toThrow('rules.conf:1: the policy is empty')
    expect(() => parsePolicy(text, 'rules.yaml')).toThrow('rules.yaml:1: a policy must be a map')
    expect(parsePolicy(`${text}\n[rules]\n`, 'rules.conf').rules).toEqual([])
  },
)

test('a policy in the short YAML form is read', () => {
  const policy = parsePolicy(`timeZone: Europe/Berlin
dicts:
  staff: ['1', 2]
rules:
  - return: 7
    method: leak
    when:
      act: login
      ip: { any: true }
      uid: { notIn: staff }
    seconds: 60
    count: 5
    result: 2
`)
  expect(policy.rules[0]).toMatchObject({ method: 'leak', timeSeconds: 60, count: 5, returnCode: 7, shadow: false })
  expect(policy.rules[0]!.conditions.map(({ op }) => op)).toEqual(['is', 'any', 'notIn'])
})

test('numbers in the values of a YAML or JSON policy keep their digits', () => {
  const policy = parsePolicy(`dicts: { d: [2121914418680830963, 007] }
rules:
  - { return: 1, method: direct, when: { uid: 2121914418680830963, zip: [007, 1.50], n: { above: 5, below: 0x10 } }, result: 2 }
`)
  expect(policy.dicts['d']!.values).toEqual(['2121914418680830963', '007'])
  expect(policy.rules[0]!.conditions).toMatchObject([
    { values: ['2121914418680830963'] },
    { values: ['007', '1.50'] },
    { bound: 5 },
    { bound: 16 },
  ])
  const json = parsePolicy('{"rules":[{"return":1,"method":"direct","when":{"uid":9007199254740993},"result":2}]}')
  expect(json.rules[0]!.conditions).toMatchObject([{ values: ['9007199254740993'] }])
})

test.each(['a,b', 'a;b', '+', 'a{~}', 'a\nb'])(
  'a policy with the value %j is not written as a rule file, which would be another policy',
  (value) => {
    const rule = { return: 1, method: 'direct', when: { a: [value] }, result: 2 }
    const policy = parsePolicy(JSON.stringify({ rules: [rule] }))
    expect(() => writePolicyText(policy)).toThrow(/rule 1: its conditions cannot be written as a rule file/)
    expect(parsePolicy(writePolicyDocument(policy))).toEqual(policy)
  },
)

// Each line is nine times the one before: about a hundred bytes would expand to gigabytes.
const aliases = [...'bcdefghij']
  .map((name, index) => `  - &${name} [${Array(9).fill(`*${'abcdefghij'[index]}`).join(', ')}]\n`)
  .join('')

test.each([
  ['[rules]\n\nrule : [count] [a=+] [time=1]', ':3: write a rule as'],
  ['[rules]\nrule : [often] [a=+] [time=1; count=1] [result=2; return=1]', ':2: "often" is not a method'],
  ['[rules]\nrule : [count] [a] [time=1; count=1] [result=2; return=1]', ':2: "a" is not a condition'],
  ['[rules]\nrule : [count] [a<x] [time=1; count=1] [result=2; return=1]', ':2: "a<x": x is not a whole number'],
  ['[rules]\nrule : [count] [a=+] [time=1; cuont=1] [result=2; return=1]', ':2: "cuont=1" is not one of'],
  ['[rules]\nrule : [count] [a=+] [time=0; count=1] [result=2; return=1]', ':2: a count rule needs time='],
  ['[rules]\nrule : [base] [a=+] [time=1; count=1] [result=2; return=1]', ':2: a base rule needs base='],
  ['[rules]\nrule : [count] [a=+] [time=1; count=1] [result=8; return=1]', ':2: result=8 is not in [result]'],
  ['[rules]\nrule : [count] [a @ d] [time=1; count=1] [result=2; return=1]', ':2: the dict d is not in [dicts]'],
  ['[rules]\nrule : [count] [a=+; a=1] [time=1; count=1] [result=2; return=1]', ':2: the parameter a appears in two'],
  ['[rulez]', ':1: [rulez] is not a section'],
  ['rule : x', ':1: "rule : x" is not "name : value" within a section'],
  ['[result]\n2 : {', ':2: '],
  ['[result]\n2 : {}', ':2: a result must be a JSON object'],
  ['[options]\ntimeZone : Mars/Olympus', ':2: option timeZone'],
  ['[dicts]\nd : nowhere.dat', ':2: the dict file nowhere.dat cannot be read'],
  ['rules:\n  - return: 1\n    method: count\n    when: { a: x }\n    result: 2', ':2: count is missing'],
  ['rules:\n  - return: 1\n   bad', ':3: '],
  [`rules:\n  - &a [x, x]\n${aliases}`, ':1: Excessive alias count'],
  ['timeZone: UTC\nrulez: []', ':2: "rulez" is unknown'],
  [
    '[rules]\nrule : [count] [a<0x10] [time=1; count=1] [result=2; return=1]',
    ':2: "a<0x10": 0x10 is not a whole number',
  ],
  ['[rules]\nrule : [direct] [a>20; a<10] [time=1] [result=2; return=1]', ':2: not a whole number a is above 20'],
  ['[rules]\nrule : [direct] [a>9; a<10] [time=1] [result=2; return=1]', ':2: not a whole number a is above 9'],
  ['[rules]\nrule : [count] [a=+] [time=9999999999; count=1] [result=2; return=1]', ':2: time is 9999999999 s'],
  ['[rules]\nrule : [count] [a=+] [time=1; count=9007199254740993] [result=2; return=1]', ':2: count must be a whole'],
  ['[rules]\nrule : [leak] [a=+] [time=1; count=1000001] [result=2; return=1]', ':2: count is 1000001; a leak rule'],
  ['[result]\n99999999999999999999 : {"Ret_type":1}', ':2: "99999999999999999999" is not a result number'],
  ['results:\n  many: { Ret_type: 1 }', ':2: "many" is not a result number'],
  ['results: [1]', ':1: results must be a map'],
  ['dicts: [1]', ':1: dicts must be a map'],
  ['dicts:\n  d: [1, null]', ':2: the dict has a value that is not a string: null'],
  ...[
    ['when: [a]', 'when must be a map'],
    ['when: { a: null }', 'a has a value that is not a string: null'],
    ['when: { a: [] }', 'the condition on a: it has no value'],
    ['when: { a: { is: [{ b: x }] } }', 'a has a value that is not a string: {"b":"x"}'],
    ['when: { a: { is: " " } }', 'a has a value that is not a string: " "'],
    ['when: { a: { any: false } }', 'any on a must be true'],
    ['when: { a: { is: 1, together: 1 } }', 'together on a must be true or false'],
    ['when: { a: { in: [x] } }', 'in on a needs the name of a dict'],
    ['when: { a: { above: 9007199254740993 } }', 'above on a needs a whole number'],
    ['when: { "": 1 }', 'a condition has no parameter'],
    ['when: { a: 1 }, shadow: 1', 'shadow must be true or false'],
    ['when: { a: 1 }, erase: 5', 'erase must be a list'],
    ['when: { a: 1 }, erase: [1, 2, 3]', 'erase must be a list'],
    ['when: { a: 1 }, erase: [-1]', 'erase1 must be a whole number'],
  ].map(([rest, message]) => [`rules:\n  - { return: 1, method: direct, result: 2, ${rest} }`, `:2: ${message}`]),
] as [string, string][])('%j is refused with file:line', (text, message) => {
  expect(() => parsePolicy(text, 'conf/p.conf')).toThrow(new RegExp(`^conf/p\\.conf${escaped(message)}`))
})

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
