import type { Runtime } from '@firebreak/core'
import { type CommandArgument, RespClient, type RespValue } from '@firebreak/core/resp'
import type { ConnectTarget, TransportKind } from '../transport/transport.ts'
import { transportPipe } from '../transport/transport-pipe.ts'
import type { Identity } from './identity.ts'

/** How the proxy makes its own requests. */
export interface AskSettings {
  readonly transports: TransportKind
  readonly runtime: Runtime
  /** Time limit for connecting, including retries. */
  readonly connectWaitMs: number
}

const retryMs = 25
const answerMs = 1000

/**
 * Sends a server one request over a separate connection. If the server cannot be reached, or is still loading its data,
 * retries until `connectWaitMs` have passed: nothing has been asked yet.
 */
export async function askOnce(
  target: ConnectTarget,
  { username, password }: Identity,
  { transports, runtime, connectWaitMs }: AskSettings,
  command: readonly CommandArgument[],
): Promise<RespValue> {
  const { clock, timers } = runtime
  const until = clock.now() + connectWaitMs
  const open = () =>
    RespClient.open(transportPipe(transports, target), {
      address: target.path ?? `${target.host}:${target.port}`,
      username,
      password,
      connectTimeoutMs: Math.max(1, until - clock.now()),
      replyTimeoutMs: answerMs,
      runtime,
      bulk: 'text',
    })
  for (;;) {
    const client = await open().catch((error: Error & { kind?: string }) => {
      const isRefused = error.kind !== undefined && error.kind !== 'LOADING'
      if (isRefused || clock.now() + retryMs > until) throw error
    })
    if (client === undefined) {
      await new Promise<void>((resolve) => timers.setTimeout(resolve, retryMs))
      continue
    }
    try {
      return await client.send(command)
    } finally {
      client.close()
    }
  }
}
