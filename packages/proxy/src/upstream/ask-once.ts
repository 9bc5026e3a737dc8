import { type CommandArgument, RespClient, type RespValue } from '@firebreak/core'
import type { ConnectTarget, TransportKind } from '../transport/transport.ts'
import { transportPipe } from '../transport/transport-pipe.ts'
import type { Identity } from './identity.ts'

/** How the proxy asks for its own needs. */
export interface AskSettings {
  readonly transports: TransportKind
  /** How long connecting may take, retries included. */
  readonly connectWaitMs: number
}

const retryMs = 25
const answerMs = 1000

/**
 * Asks a server one thing over a connection of its own. A server that cannot be reached, or is still loading its data, is
 * tried again until `connectWaitMs` have passed: nothing was asked yet.
 */
export async function askOnce(
  target: ConnectTarget,
  { username, password }: Identity,
  { transports, connectWaitMs }: AskSettings,
  command: readonly CommandArgument[],
): Promise<RespValue> {
  const until = performance.now() + connectWaitMs
  const open = () =>
    RespClient.open(transportPipe(transports, target), {
      address: target.path ?? `${target.host}:${target.port}`,
      username,
      password,
      connectTimeoutMs: Math.max(1, until - performance.now()),
      replyTimeoutMs: answerMs,
      bulk: 'text',
    })
  for (;;) {
    const client = await open().catch((error: Error & { kind?: string }) => {
      const isRefused = error.kind !== undefined && error.kind !== 'LOADING'
      if (isRefused || performance.now() + retryMs > until) throw error
    })
    if (client === undefined) {
      await new Promise((resolve) => setTimeout(resolve, retryMs))
      continue
    }
    try {
      return await client.send(command)
    } finally {
      client.close()
    }
  }
}
