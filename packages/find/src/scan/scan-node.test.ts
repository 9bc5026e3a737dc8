import type { RespClient } from '@firebreak/core/resp'
import { expect, onTestFinished, test } from 'vitest'
import { scanNode } from './scan-node.ts'

test('a scan that is stopped before its first page leaves nothing behind that could fail', async () => {
  const unhandled: unknown[] = []
  const listener = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', listener)
  onTestFinished(() => void process.off('unhandledRejection', listener))
  let close!: (error: Error) => void
  const closed = new Promise<never>((_, reject) => {
    close = reject
  })
  const connection = { send: () => closed } as unknown as RespClient
  const signal = AbortSignal.abort()
  expect(await scanNode(connection, { signal }, async () => {})).toEqual({ isComplete: false })
  close(new Error('the connection was closed'))
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  expect(unhandled).toEqual([])
})
