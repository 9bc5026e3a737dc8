import { decodeFrame, parseBinaryReport } from '@firebreak/core'
import { expect, test } from 'vitest'
import { readPage } from '../docs/pages.ts'

const page = readPage('docs/reference/formats.md')

test('every type of frame is on the page with its code', () => {
  const named = [...page.matchAll(/^\| `(\w+)` \| (\d+) \|/gm)].map(([, name, code]) => [Number(code), name])
  const known: [number, string][] = []
  for (let code = 0; code < 256; code++) {
    try {
      known.push([code, decodeFrame(Uint8Array.of(1, code, 0)).type])
    } catch {}
  }
  expect(named).toEqual(known)
})

test('the report on the page decodes to what the page says', () => {
  const [, hex] = /```hex\n([^`]+)```/.exec(page)!
  const bytes = Buffer.from(hex!.replace(/\s/g, ''), 'hex')
  const frame = decodeFrame(bytes)
  expect([frame.type, frame.sequence]).toEqual(['report', 1])
  const { collectTs, sendTs, sections, ...who } = parseBinaryReport(bytes.subarray(frame.payloadStart))
  expect(sendTs - collectTs).toBe(100)
  expect(who).toEqual({ serviceId: 'shop', hostId: 'host-1', instanceId: 'p1' })
  expect(sections).toMatchObject([
    {
      redisClusterId: 'main',
      totalCount: 520,
      entries: [
        { key: 'product_1', count: 455 },
        { key: 'cart:7', count: 65, writes: 60, bytes: 4200 },
      ],
    },
  ])
})
