import type { Clock, Timers } from '@firebreak/core'
import { formatAddress, type NodeAddress } from '../address/node-address.ts'
import { fetchJson } from '../time/fetch-json.ts'

/** The path where every node reports its time. */
export const timePath = '/api/snowflake/time'

/** How this node's clock compares with those of live nodes. */
export interface PeerClocks {
  /** How many peers answered. */
  readonly answered: number
  /** Peers that did not answer. */
  readonly silent: readonly string[]
  /** This node's clock minus the average of the peers', in milliseconds; positive where this one is ahead. */
  readonly averageOffsetMs: number
  /** The same relative to the median, which one wrong clock cannot move. */
  readonly medianOffsetMs: number
}

/** Asks one peer for the time on its clock, in milliseconds since 1970. */
export type AskTime = (peer: NodeAddress) => Promise<number>

/** Asks over HTTP. */
export function askTimeOverHttp(timers: Timers, timeoutMs: number): AskTime {
  return async (peer) => {
    const { isOk, body } = await fetchJson(`http://${formatAddress(peer)}${timePath}`, timers, timeoutMs)
    const { time } = body as { time?: unknown }
    if (!isOk || typeof time !== 'number') throw new Error('no time in the answer')
    return time
  }
}

/** This node's clocks, and how it reaches the others'. */
export interface PeerAsker {
  /** The clock that is in the ids. */
  readonly clock: Clock
  /** A clock that never steps. */
  readonly steady: Clock
  readonly askTime: AskTime
}

const asksPerPeer = 3

/** Asks every peer for its time. */
export async function askPeerClocks(peers: readonly NodeAddress[], asker: PeerAsker): Promise<PeerClocks> {
  const offsets: number[] = []
  const silent: string[] = []
  await Promise.all(
    peers.map(async (peer) => {
      try {
        offsets.push(await askOffset(peer, asker))
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
 * This clock minus the peer's. The peer read its clock at some point of the round trip, assumed to be the middle, so
 * the error is at most half of it: of a few answers the fastest counts.
 */
async function askOffset(peer: NodeAddress, { clock, steady, askTime }: PeerAsker): Promise<number> {
  let quickest = { tripMs: Number.POSITIVE_INFINITY, offsetMs: 0 }
  for (let ask = 0; ask < asksPerPeer; ask++) {
    const startedAt = steady.now()
    const time = await askTime(peer)
    const tripMs = steady.now() - startedAt
    if (tripMs < quickest.tripMs) quickest = { tripMs, offsetMs: clock.now() - (time + tripMs / 2) }
  }
  return quickest.offsetMs
}
