import { type Clock, steadyClock } from '@firebreak/core'
import { formatAddress, type NodeAddress } from '../address/node-address.ts'

/** Where every node tells its time. */
export const timePath = '/api/snowflake/time'

/** How this node's clock stands among the live ones. */
export interface PeerClocks {
  /** How many peers answered. */
  readonly answered: number
  /** Peers that did not answer. */
  readonly silent: readonly string[]
  /** This node's clock minus the average of the peers', in milliseconds; positive where this one is ahead. */
  readonly averageOffsetMs: number
  /** The same against the median, which one mad clock cannot move. */
  readonly medianOffsetMs: number
}

/** Asks every peer over HTTP for its time; half of each round trip is taken off. */
export async function askPeerClocks(
  peers: readonly NodeAddress[],
  clock: Clock,
  timeoutMs: number,
): Promise<PeerClocks> {
  const offsets: number[] = []
  const silent: string[] = []
  await Promise.all(
    peers.map(async (peer) => {
      const address = formatAddress(peer)
      try {
        const startedAt = steadyClock.now()
        const response = await fetch(`http://${address}${timePath}`, { signal: AbortSignal.timeout(timeoutMs) })
        const body = (await response.json()) as { time?: unknown }
        if (!response.ok || typeof body.time !== 'number') throw new Error('no time in the answer')
        const peerNowMs = body.time + (steadyClock.now() - startedAt) / 2
        offsets.push(clock.now() - peerNowMs)
      } catch {
        silent.push(address)
      }
    }),
  )
  offsets.sort((a, b) => a - b)
  const middle = offsets.length / 2
  const median = ((offsets[Math.ceil(middle) - 1] ?? 0) + (offsets[Math.floor(middle)] ?? 0)) / 2
  const sum = offsets.reduce((total, offset) => total + offset, 0)
  return {
    answered: offsets.length,
    silent: silent.sort(),
    averageOffsetMs: offsets.length === 0 ? 0 : Math.round(sum / offsets.length),
    medianOffsetMs: Math.round(median),
  }
}
