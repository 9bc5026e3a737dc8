import fc from 'fast-check'
import { expect, test } from 'vitest'
import { keyName } from '../keys/key-text.ts'
import { encodeBinaryReport, parseBinaryReport } from './binary-report.ts'
import { type Report, ReportRefusedError } from './report.ts'
import { formatTextReport, parseTextReport, sectionTotal } from './text-report.ts'

const example = `# 1700000000000,1700000000050,shop,host-7
# redisClusterId1
key1:4455,key2:467,key3:4895
key4:423,key8:1500
# redisClusterId2
key2:23,key873:10
`

test('the example in the format’s documentation parses to the expected report', () => {
  const report = parseTextReport(example)
  expect(report).toMatchObject({
    collectTs: 1700000000000,
    sendTs: 1700000000050,
    serviceId: 'shop',
    hostId: 'host-7',
    instanceId: 'host-7',
  })
  expect(report.sections.map(({ redisClusterId, entries }) => [redisClusterId, entries.length])).toEqual([
    ['redisClusterId1', 5],
    ['redisClusterId2', 2],
  ])
  expect(report.sections[0]!.entries[1]).toEqual({ key: 'key2', count: 467, writes: 0, bytes: 0 })
})

test.each([
  ['', 'line 1: the first line must be'],
  ['# 1,2,a', 'line 1: the first line has 3 fields'],
  ['# x,2,a,b', 'line 1: collectTs is "x"'],
  ['# 1763223282000,1763223282,a,b', 'line 1: sendTs is "1763223282", which is seconds; it must be milliseconds'],
  ['# 1,2,a,', 'line 1: hostId is empty'],
  ['# 1,2,a,b\nk:1', 'line 2: there are entries before'],
  ['# 1,2,a,b\n# c\nk', 'line 3: "k" is not key:count'],
  ['# 1,2,a,b\n# c\nk:-1', 'line 3: the count of "k" is "-1"'],
  ['# 1,2,a,b\n# c\nk:1\n100%:1', 'line 4: the key "100%"'],
  ['# 1,2,a,b\n#\nk:1', 'line 2: a redisClusterId must follow'],
])('a broken report is refused with its line and reason: %j', (text, reason) => {
  expect(() => parseTextReport(text)).toThrow(reason)
  expect(() => parseTextReport(text)).toThrow(ReportRefusedError)
})

const anyKey = fc.oneof(fc.string({ minLength: 1 }), fc.uint8Array({ minLength: 1, maxLength: 200 })).map(keyName)
const anyId = fc
  .string({ minLength: 1, maxLength: 12 })
  .filter((id) => id.trim() !== '')
  .map(keyName)
const anyEntry = fc
  .record({ key: anyKey, count: fc.nat(1e9), writes: fc.nat(1e9), bytes: fc.nat({ max: 2 ** 40 }) })
  .map((entry) => ({ ...entry, writes: Math.min(entry.writes, entry.count) }))
// What looks like seconds is refused in text.
const anyTime = fc.nat({ max: 2 ** 41 }).filter((time) => time < 1e9 || time >= 1e10)
const anyReport: fc.Arbitrary<Report> = fc.record({
  collectTs: anyTime,
  sendTs: anyTime,
  serviceId: anyId,
  hostId: anyId,
  instanceId: anyId,
  sections: fc.array(fc.record({ redisClusterId: anyId, entries: fc.array(anyEntry, { maxLength: 50 }) }), {
    maxLength: 4,
  }),
})

test('any report can be restored from its text and its binary form', () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      expect(parseTextReport(formatTextReport(report, 2), 2)).toEqual(report)
      const withTotals = {
        ...report,
        sections: report.sections.map((section) => ({ ...section, totalCount: sectionTotal(section) })),
      }
      expect(parseBinaryReport(encodeBinaryReport(report))).toEqual(withTotals)
    }),
  )
})

test('a binary report that is cut or changed is refused or still a report, never a crash', () => {
  fc.assert(
    fc.property(anyReport, fc.nat(), fc.nat(255), fc.boolean(), (report, place, value, isCut) => {
      const bytes = encodeBinaryReport(report)
      const at = place % bytes.length
      const broken = isCut ? bytes.slice(0, at) : bytes.slice()
      if (!isCut) broken[at] = value
      try {
        parseBinaryReport(broken)
      } catch (error) {
        expect(error).toBeInstanceOf(ReportRefusedError)
      }
    }),
  )
})
