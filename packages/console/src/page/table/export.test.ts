import { expect, test } from 'vitest'
import { toCsv } from './export.ts'

test('cells with commas, quotes and line ends are quoted, and no key becomes a formula', () => {
  expect(
    toCsv(
      ['key', 'rate'],
      [
        ['a,"b"', 7],
        ['=cmd()', 1],
        ['x\ny', 0.5],
      ],
    ),
  ).toBe(`key,rate\r\n"a,""b""",7\r\n'=cmd(),1\r\n"x\ny",0.5`)
})
