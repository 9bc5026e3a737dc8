import { FirebreakError } from '../errors/firebreak-error.ts'
import { VarintReader, VarintWriter } from '../report/varint.ts'
import type { TableDelta, TableSnapshot } from '../strategy/strategy-table.ts'

/**
 * The frames on the WebSocket between a sensor and a hub (`/v1/sensor`, binary messages, one frame each):
 *
 *     byte version (1)   byte type   varint sequence   payload
 *
 * A `report` carries a binary report, an `invalidate` its own binary form, everything else JSON in UTF-8. The sequence
 * counts per direction and type of lane: reports have theirs (the hub recognises duplicates by instance and sequence),
 * invalidations have the lane's.
 */
export const frameVersion = 1

const types = {
  // sensor → hub
  hello: 1,
  report: 2,
  status: 3,
  resync: 4,
  claim: 5,
  // hub → sensor
  welcome: 16,
  snapshot: 17,
  delta: 18,
  heartbeat: 19,
  invalidate: 20,
  refused: 21,
} as const

export type FrameType = keyof typeof types

const typeNames = new Map<number, FrameType>(Object.entries(types).map(([name, code]) => [code, name as FrameType]))

/** A frame's head, and where its payload starts. */
export interface Frame {
  readonly type: FrameType
  readonly sequence: number
  readonly bytes: Uint8Array
  readonly payloadStart: number
}

/** A message that is no frame of ours. */
export class FrameError extends FirebreakError {
  constructor(message: string) {
    super('FB_FRAME_INVALID', message)
  }
}

/** A frame of a kind that a later version has added: it is passed over. */
export class UnknownFrameError extends FrameError {}

export function encodeFrame(type: FrameType, sequence: number, payload: Uint8Array): Uint8Array {
  const writer = new VarintWriter(payload.length + maxFrameHeadBytes)
  writeFrameHead(writer, type, sequence)
  writer.raw(payload)
  return writer.view()
}

/** The most that `writeFrameHead` writes. */
export const maxFrameHeadBytes = 12

/** Writes all of a frame but its payload, which is to follow. */
export function writeFrameHead(writer: VarintWriter, type: FrameType, sequence: number): void {
  writer.byte(frameVersion)
  writer.byte(types[type])
  writer.varint(sequence)
}

export function decodeFrame(bytes: Uint8Array): Frame {
  const reader = new VarintReader(bytes)
  const version = reader.byte()
  const code = reader.byte()
  const sequence = reader.varint()
  if (reader.isBroken) throw new FrameError(`a frame of ${bytes.length} bytes is shorter than its head`)
  if (version !== frameVersion)
    throw new FrameError(`frame version ${version} is not known here; this side speaks ${frameVersion}`)
  const type = typeNames.get(code)
  if (type === undefined) throw new UnknownFrameError(`frame type ${code} is not known here`)
  return { type, sequence, bytes, payloadStart: reader.position }
}

/** First frame of a sensor. */
export interface HelloPayload {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  /** `client/0.1.0 ioredis`, `proxy/0.1.0` … */
  readonly agent: string
  readonly redisClusterIds: readonly string[]
  /** The table the sensor has, so that the hub may send a delta; empty epoch: none. */
  readonly epoch: string
  readonly version: number
  /** The sensor's clock, for its offset. */
  readonly sentAt: number
  /** An app token, where the hub asks for one. */
  readonly token?: string
}

/** First frame of a hub, and again when a setting changes. */
export interface WelcomePayload {
  readonly hubId: string
  /** The hub's clock: entries' `until` is in this time. */
  readonly hubTime: number
  /** How often to report. */
  readonly intervalMs: number
  /** Threshold sampling: counts below this are sent as this with probability count / f; 1 sends all. */
  readonly samplingFloor: number
  readonly heartbeatMs: number
}

/** Sent by the hub every `heartbeatMs`. */
export interface HeartbeatPayload {
  readonly hubTime: number
  readonly epoch: string
  /** The newest version of this sensor's table: a higher one than the sensor's is a gap. */
  readonly version: number
  /** The newest sequence of the invalidation lane. */
  readonly laneHead: number
  readonly isOff: boolean
  readonly intervalMs: number
  readonly samplingFloor: number
  /** True while the hub is cut off from the store that it shares with others: another hub of the list is better. */
  readonly isAlone?: boolean
  /** Clusters whose every write the hub's sources see. */
  readonly watched?: readonly WatchedCluster[]
}

/** How far the hub's sources have seen every write of a cluster. */
export interface WatchedCluster {
  readonly redisClusterId: string
  /** All that was written until this long before the heartbeat's `hubTime` is on the lane before the heartbeat. */
  readonly completeAgoMs: number
}

/** Sent by the sensor about once a second: it lives, what it applied, and what its shield did since the last one. */
export interface StatusPayload {
  readonly sentAt: number
  readonly epoch: string
  readonly version: number
  readonly isOff: boolean
  readonly counters: ShieldCounters
  /** Of each hot key with something to tell. */
  readonly keys: readonly KeyEffect[]
  /** Masters of each Redis, as the sensor sees them. */
  readonly nodeCounts?: Readonly<Record<string, number>>
  /** Watchers' state in words the console shows, by Redis cluster. */
  readonly watchers: readonly WatcherStatus[]
}

/** What a shield did since its last status; all are differences. */
export interface ShieldCounters {
  readonly reads: number
  readonly writes: number
  readonly localHits: number
  readonly loads: number
  readonly bypasses: number
  readonly invalidations: number
  readonly flushes: number
  readonly limited: number
  readonly copyReads: number
  readonly droppedReports: number
  readonly errors: number
}

/** What a strategy did for one key since the last status. */
export interface KeyEffect {
  readonly redisClusterId: string
  /** The key's text. */
  readonly key: string
  readonly localHits: number
  readonly redisReads: number
  readonly bytesSaved: number
  /** Mean milliseconds of a Redis read of this key, where measured. */
  readonly readMs?: number
  readonly limited: number
  readonly errors: number
  /** Largest observed staleness, where the canary looked. */
  readonly staleMs?: number
  /** The rule by which the key is hot; beside `staleMs`. */
  readonly ruleId?: string
}

export interface WatcherStatus {
  readonly redisClusterId: string
  readonly kind: 'tracking' | 'fallback' | 'lane' | 'none'
  readonly state: 'live' | 'connecting' | 'expired' | 'refused'
  readonly detail: string
}

/** A process alone crossed a threshold and acted; the hub confirms by its table, or takes it back. */
export interface ClaimPayload {
  readonly redisClusterId: string
  /** The key's text. */
  readonly key: string
  readonly ruleId: string
  readonly heat: number
}

/** Why the hub refuses a sensor or a report. */
export interface RefusedPayload {
  readonly code: string
  readonly reason: string
}

/** JSON payloads by frame type; keys inside entries are key texts. */
export interface JsonPayloads {
  hello: HelloPayload
  status: StatusPayload
  resync: { readonly reason: string }
  claim: ClaimPayload
  welcome: WelcomePayload
  snapshot: TableSnapshot
  delta: TableDelta
  heartbeat: HeartbeatPayload
  refused: RefusedPayload
}

export type JsonFrameType = keyof JsonPayloads

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function encodeJsonFrame<Type extends JsonFrameType>(
  type: Type,
  sequence: number,
  payload: JsonPayloads[Type],
): Uint8Array {
  return encodeFrame(type, sequence, encoder.encode(JSON.stringify(payload)))
}

/** The payload of a JSON frame; its shape is what the other side of the same version sends, checked at the use. */
export function decodeJsonPayload<Type extends JsonFrameType>(frame: Frame): JsonPayloads[Type] {
  try {
    return JSON.parse(decoder.decode(frame.bytes.subarray(frame.payloadStart))) as JsonPayloads[Type]
  } catch {
    throw new FrameError(`the payload of a ${frame.type} frame is not JSON`)
  }
}

/** One message of the invalidation lane. */
export interface Invalidation {
  /** The lane's sequence number of this message. */
  readonly sequence: number
  readonly redisClusterId: string
  readonly database: number
  /** `flush`: everything of the cluster (and database, unless −1) is to be dropped. */
  readonly kind: 'keys' | 'flush'
  readonly items: readonly InvalidatedKey[]
}

export interface InvalidatedKey {
  /** The key's name. */
  readonly key: string
  /** The new value of a string key, where it is small; undefined: just drop what is cached. */
  readonly value?: Uint8Array
  /** Milliseconds the value may live, where it has a TTL. */
  readonly ttlMs?: number
}
