// The guard's process (see monitor-guard.ts): reads its orders from stdin, and kills the client when stdin ends, when
// the time is up, or when the server has too much output waiting for the client.
import { createInterface } from 'node:readline'
import type { RespClient } from '@firebreak/core/resp'
import { openServer } from '../connect/open-server.ts'
import { text } from '../connect/replies.ts'
import type { GuardOrders } from './monitor-guard.ts'

const everyMs = 50

const lines = createInterface({ input: process.stdin })
const first = await new Promise<string | undefined>((resolve) => {
  lines.once('line', resolve)
  lines.once('close', () => resolve(undefined))
})
if (first !== undefined) await guard(JSON.parse(first) as GuardOrders)
process.exit(0)

async function guard(orders: GuardOrders): Promise<void> {
  const connection = await openServer(orders.target)
  const startedAt = performance.now()
  let isReaderGone = false
  lines.once('close', () => {
    isReaderGone = true
  })
  for (;;) {
    const waiting = await waitingBytes(connection, orders.clientId)
    if (waiting === undefined) return
    if (isReaderGone || waiting > orders.maxServerBytes || performance.now() - startedAt > orders.maxMs) {
      await connection.send(['CLIENT', 'KILL', 'ID', orders.clientId]).catch(() => {})
      return
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

/** Bytes waiting for the client, or undefined if it is gone. `ID` of CLIENT LIST came with 6.2. */
async function waitingBytes(connection: RespClient, clientId: number): Promise<number | undefined> {
  const reply = await connection
    .send(['CLIENT', 'LIST', 'ID', clientId])
    .catch(() => connection.send(['CLIENT', 'LIST']))
  const line = text(reply)
    .split('\n')
    .find((candidate) => candidate.startsWith(`id=${clientId} `))
  return line === undefined ? undefined : Number(/ omem=(\d+)/.exec(line)?.[1] ?? 0)
}
