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

const asksPerPeer = 3

/** Asks every peer over HTTP for its time. */
export async function askPeerClocks(
  peers: readonly NodeAddress[],
  clock: Clock,
  timeoutMs: number,
): Promise<PeerClocks> {
  const offsets: number[] = []
  const silent: string[] = []
  await Promise.all(
    peers.map(async (peer) => {
      try {
        offsets.push(await askOffset(peer, clock, timeoutMs))
      } catch {
        silent.push(formatAddress(peer))
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

/**
 * This clock minus the peer's. The peer read its clock somewhere within the round trip, by guess in its middle, so the
 * error is at most half of it: of a few answers the quickest counts.
 */
async function askOffset(peer: NodeAddress, clock: Clock, timeoutMs: number): Promise<number> {
  let quickest = { tripMs: Number.POSITIVE_INFINITY, offsetMs: 0 }
  for (let ask = 0; ask < asksPerPeer; ask++) {
    const startedAt = steadyClock.now()
    const response = await fetch(`http://${formatAddress(peer)}${timePath}`, { signal: AbortSignal.timeout(timeoutMs) })
    const { time } = (await response.json()) as { time?: unknown }
    const tripMs = steadyClock.now() - startedAt
    if (!response.ok || typeof time !== 'number') throw new Error('no time in the answer')
    if (tripMs < quickest.tripMs) quickest = { tripMs, offsetMs: clock.now() - (time + tripMs / 2) }
  }
  return quickest.offsetMs
}
