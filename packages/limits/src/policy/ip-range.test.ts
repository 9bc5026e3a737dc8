import { expect, test } from 'vitest'
import { compileValues, parseValue } from './condition.ts'
import { parsePolicy, parsePolicyText, RuleService } from './index.ts'
import { parseIp } from './ip-range.ts'

const malformed: [value: string, why: RegExp][] = [
  ['10.0.0.0/33', /\/33 is not a mask; use a number from 0 to 32/],
  ['10.0.0.0/', /is not a mask/],
  ['10.0.0.0/-1', /is not a mask/],
  ['10.0.0.0/8.5', /is not a mask/],
  ['10.0.0.0/255.0.0.0', /is not a mask/],
  ['10.0.0.0/9999', /is not a mask/],
  ['10.0.0.0/8/8', /has two masks/],
  ['10.0.0/8', /10\.0\.0 is not an address/],
  ['10.0/16', /10\.0 is not an address/],
  ['10.0.0.256/8', /10\.0\.0\.256 is not an address/],
  ['10.0.0.0.0/8', /is not an address/],
  ['010.0.0.1/8', /is not an address/],
  ['2001:db8::/129', /\/129 is not a mask; use a number from 0 to 128/],
  ['2001:db8::1::/32', /is not an address/],
  ['::ffff:10.0.0.0/129', /is not a mask/],
  ['10.0.0.9-10.0.0.1', /ends before it begins/],
  ['fe80::9-fe80::1', /ends before it begins/],
  ['::ffff:10.0.0.9-10.0.0.1', /ends before it begins/],
  ['10.0.0.1-fe80::1', /goes from IPv4 to IPv6/],
  ['10.0.0.1-', /nothing is not an address/],
  ['-10.0.0.1', /nothing is not an address/],
  ['10.0.0.1-9', /9 is not an address/],
  ['10.0.0.1-10.0.0.300', /10\.0\.0\.300 is not an address/],
  ['10.0.0.1-10.0.0.5-10.0.0.9', /more than two ends/],
  ['10.*', /stars replace the last/],
  ['10.*.0.5', /stars replace the last/],
  ['*.0.0.1', /stars replace the last/],
  ['10.0.0.0.*', /stars replace the last/],
  ['10.0.0.1*', /stars replace the last/],
  ['10.0.256.*', /stars replace the last/],
  ['10.0.0.256', /is not an IPv4 address/],
  ['010.0.0.1', /is not an IPv4 address/],
  ['1::2::3', /is not an IPv6 address/],
  ['::12345', /is not an IPv6 address/],
  ['1:2:3:4:5:6:7:8:9', /is not an IPv6 address/],
  ['100-1', /ends before it begins/],
  ['-1--5', /ends before it begins/],
  ['5-', /has no end/],
  ['1-9007199254740993', /within ±2\^53/],
  ['1-99999999999999999999999', /within ±2\^53/],
]

test.each(malformed)('%s is refused when a policy is loaded, in every form of one and in a dict', (value, why) => {
  expect(() => parseValue(value)).toThrow(why)
  const line = (conditions: string) => `[rules]\nrule : [direct] [${conditions}] [time=1] [result=2; return=5]`
  for (const op of ['=', '!='])
    expect(() => parsePolicyText(line(`ip${op}${value}`), 'p')).toThrow(new RegExp(`^p:2: .*${why.source}`))
  const document = { rules: [{ return: 5, method: 'direct', when: { ip: { is: ['1', value] } }, result: 2 }] }
  expect(() => parsePolicy(JSON.stringify(document), 'p')).toThrow(why)
  expect(() => parsePolicy(JSON.stringify({ dicts: { d: ['1', value] } }), 'p')).toThrow(why)
  const file = '[dicts]\nd : d.dat'
  expect(() => parsePolicyText(file, 'p', () => `# all\n1\n${value}\n`)).toThrow(
    new RegExp(`^p:2: the dict file d\\.dat, line 3: .*${why.source}`),
  )
  // Nor can a policy built in code activate it.
  const policy = parsePolicy(JSON.stringify({ dicts: { d: ['1'] }, ...document }).replace(JSON.stringify(value), '"2"'))
  const service = new RuleService()
  for (const wrong of [
    { ...policy, dicts: { d: { file: undefined, values: [value] } } },
    {
      ...policy,
      rules: [
        { ...policy.rules[0]!, conditions: [{ key: 'ip', op: 'is', values: [value], together: false } as const] },
      ],
    },
  ]) {
    expect(() => service.load(wrong)).toThrow(expect.objectContaining({ code: 'FB_POLICY_INVALID' }))
  }
  expect(service.version).toBe(0)
})

test.each([
  ...['add-comment', 'ip-10-0-0-1', '10.0.0.1-prod', 'a/33', '10/8', '2026-05-05', '12:30:45', 'aa:bb:cc:dd:ee:ff'],
  ...['1.2.3', '120.0.6099.109', 'std::map', '*', '-', '/', '5', '-5', '1..5', 'x.*'],
])('%s is a text like any other', (value) => {
  const matches = compileValues([value])
  expect(matches(value)).toBe(true)
  expect(matches(`${value} `)).toBe(false)
})

test('an address is the same in all its spellings', () => {
  for (const list of [['10.0.0.5'], ['10.0.0.0/24'], ['::ffff:10.0.0.0/120'], ['::ffff:a00:0-::ffff:10.0.0.9']]) {
    const matches = compileValues(list)
    for (const spelling of ['10.0.0.5', '::ffff:10.0.0.5', '::FFFF:a00:5', '0:0:0:0:0:ffff:0a00:0005'])
      expect(matches(spelling), `${list} ${spelling}`).toBe(true)
    for (const other of ['10.0.1.5', '::10.0.0.5', '::a00:5', '64:ff9b::10.0.0.5', '10.0.0.05', '']) {
      expect(matches(other), `${list} ${other}`).toBe(false)
    }
  }
  expect(parseIp('::ffff:0:0')).toEqual({ family: 4, value: 0n })
  expect(compileValues(['0.0.0.0/0'])('255.255.255.255')).toBe(true)
  expect(compileValues(['::/0'])('2001:db8::1')).toBe(true)
})

test('ranges that overlap, contain each other or touch are all of them', () => {
  const matches = compileValues(['10.0.0.5-10.0.0.20', '10.0.0.0/29', '10.0.0.7', '10.0.0.21', '10.0.1.*', 'fe80::/10'])
  const isIn = (last: number) => matches(`10.0.0.${last}`)
  expect(Array.from({ length: 30 }, (_, last) => last).filter((last) => !isIn(last))).toEqual([
    22, 23, 24, 25, 26, 27, 28, 29,
  ])
  expect([matches('10.0.1.255'), matches('10.0.2.0'), matches('febf::1'), matches('fec0::1')]).toEqual([
    true,
    false,
    true,
    false,
  ])
})
