import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFrame, decodeJsonPayload, encodeJsonFrame, FrameError } from './frame.ts'
import { decodeInvalidation, encodeInvalidation } from './invalidation.ts'

test('a JSON frame is decoded with its type and sequence', () => {
  const payload = { redisClusterId: 'main', key: 'a%20b', ruleId: 'r', heat: 12 }
  const frame = decodeFrame(encodeJsonFrame('claim', 300, payload))
  expect([frame.type, frame.sequence]).toEqual(['claim', 300])
  expect(decodeJsonPayload<'claim'>(frame)).toEqual(payload)
})

test('an invalidation is decoded completely, with binary keys and values', () => {
  const invalidation = {
    sequence: 9,
    redisClusterId: 'main',
    database: 0,
    kind: 'keys',
    items: [
      { key: 'plain' },
      { key: '\u0000b\u00ff\u0000', value: Uint8Array.from([0, 255]), ttlMs: 1500 },
      { key: '', value: new Uint8Array(0) },
    ],
  } as const
  expect(decodeInvalidation(decodeFrame(encodeInvalidation(invalidation)))).toEqual(invalidation)
  const flush = { sequence: 10, redisClusterId: 'main', database: -1, kind: 'flush', items: [] } as const
  expect(decodeInvalidation(decodeFrame(encodeInvalidation(flush)))).toEqual(flush)
})

test('bytes that are not a frame give an error that says why', () => {
  expect(() => decodeFrame(Uint8Array.from([1]))).toThrow('shorter than its head')
  expect(() => decodeFrame(Uint8Array.from([9, 1, 0]))).toThrow('frame version 9')
  expect(() => decodeFrame(Uint8Array.from([1, 99, 0]))).toThrow('frame type 99')
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        const frame = decodeFrame(bytes)
        if (frame.type === 'invalidate') decodeInvalidation(frame)
        else if (frame.type !== 'report') decodeJsonPayload(frame)
      } catch (error) {
        expect(error).toBeInstanceOf(FrameError)
      }
    }),
  )
})

test('a value is a copy even if the message is a Buffer', () => {
  const items = [{ key: 'k', value: Uint8Array.from([1, 2]) }]
  const message = Buffer.from(
    encodeInvalidation({ sequence: 1, redisClusterId: 'main', database: 0, kind: 'keys', items }),
  )
  const [item] = decodeInvalidation(decodeFrame(message)).items
  message.fill(0)
  expect(item!.value).toEqual(Uint8Array.from([1, 2]))
  expect(item!.value!.buffer.byteLength).toBe(2)
})
