import { expect, test } from 'vitest'
import { parseKafkaUrl } from './kafka-reports.ts'

const parse = (text: string) => parseKafkaUrl(text, 'kafkaUrl')

test('brokers get the default port, and the topic its default name', () => {
  expect(parse('kafka://a,b:1234')).toEqual({ brokers: ['a:9092', 'b:1234'], topic: 'firebreak-reports', isTls: false })
  expect(parse('kafkas://[::1]:9093/mine')).toEqual({ brokers: ['[::1]:9093'], topic: 'mine', isTls: true })
})

test('user and password are decoded, for the requested mechanism', () => {
  const sasl = { mechanism: 'scram-sha-512', username: 'me@x', password: 'a:b/c' }
  expect(parse('kafkas://me%40x:a:b%2Fc@host?sasl=scram-sha-512').sasl).toEqual(sasl)
  expect(parse('kafka://u:p@host').sasl?.mechanism).toBe('plain')
})

test.each([
  'kafka://',
  'kafka://host:port',
  'kafka://a b:9092',
  'kafka://u@host',
  'kafka://u:secret@host?sasl=oauth',
  'kafka://u:secret@host?ssl=true',
  'kafka://u:%zz@host',
  'kafka://host/a/b',
  'kafka://host/to pic',
  'nats://host',
])('%s is refused by the name of its setting, without its secret', (text) => {
  expect(() => parse(text)).toThrow(/kafkaUrl/)
  expect(() => parse(text)).not.toThrow(/secret/)
})
