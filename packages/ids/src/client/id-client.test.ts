import { expect, test } from 'vitest'
import { IdClient } from './id-client.ts'

test('a batch larger than any service gives is refused by the constructor', () => {
  const made = (batch: number) => () => new IdClient({ url: 'http://127.0.0.1:1', batch })
  made(10_000)()
  for (const batch of [10_001, 0, 1.5, Number.NaN])
    expect(made(batch)).toThrow(
      expect.objectContaining({ code: 'FB_OPTION_INVALID', message: expect.stringContaining('10000') }),
    )
})

test.each([[[]], ['ftp://127.0.0.1'], ['127.0.0.1:8070'], [['http://127.0.0.1:1', '']]])(
  'the address %j is refused by the constructor',
  (url) => {
    expect(() => new IdClient({ url })).toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID' }))
  },
)
