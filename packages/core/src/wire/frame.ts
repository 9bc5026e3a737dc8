import { FirebreakError } from '../errors/firebreak-error.ts'
import { VarintReader, VarintWriter } from '../report/varint.ts'
import type { TableDelta, TableSnapshot } from '../strategy/strategy-table.ts'

/**
 * The frames on the WebSocket between a sensor and a hub (`/v1/sensor`, binary messages, one frame each):
 *
 *     byte version (1)   byte type   varint sequence   payload
 *
 * A `report` carries a binary report, an `invalidate` its own binary form, everything else JSON in UTF-8. Sequences
 * count per direction and kind of lane: reports have their own (the hub recognises duplicates by instance and
 * sequence), invalidations have the lane's.
 */
export const frameVersion = 1

const types = {
  // sensor → hub
  hello: 1,
  report: 2,
  status: 3,
  resync: 4,
  claim: 5,
  inspected: 6,
  load: 7,
  // hub → sensor
  welcome: 16,
  snapshot: 17,
  delta: 18,
  heartbeat: 19,
  invalidate: 20,
  refused: 21,
  inspect: 22,
  probe: 23,
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

/** A message that is not a valid frame. */
export class FrameError extends FirebreakError {
  constructor(message: string) {
    super('FB_FRAME_INVALID', message)
  }
}

/** A frame of a type that a later version added: it is skipped. */
export class UnknownFrameError extends FrameError {}

export function encodeFrame(type: FrameType, sequence: number, payload: Uint8Array): Uint8Array {
  const writer = new VarintWriter(payload.length + maxFrameHeadBytes)
  writeFrameHead(writer, type, sequence)
  writer.raw(payload)
  return writer.view()
}

/** The most bytes that `writeFrameHead` writes. */
export const maxFrameHeadBytes = 12

/** Writes everything in a frame except its payload, which must follow. */
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
    throw new FrameError(`frame version ${version} is not supported; this side speaks ${frameVersion}`)
  const type = typeNames.get(code)
  if (type === undefined) throw new UnknownFrameError(`frame type ${code} is unknown`)
  return { type, sequence, bytes, payloadStart: reader.position }
}

/** A sensor's first frame. */
export interface HelloPayload {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  /** `client/0.1.0 ioredis`, `proxy/0.1.0` … */
  readonly agent: string
  readonly redisClusterIds: readonly string[]
  /** The table that the sensor has, so that the hub may send a delta; an empty epoch means none. */
  readonly epoch: string
  readonly version: number
  /** The sensor's clock, to compute its offset. */
  readonly sentAt: number
  /** An app token, if the hub requires one. */
  readonly token?: string
  /** True if the process answers `inspect`; earlier versions ignore it. */
  readonly canInspect?: boolean
  /** True if the process can measure the load of its Redis nodes (`probe`). */
  readonly canProbe?: boolean
  /** True if the process puts a snapshot together from parts (`hasMore`). */
  readonly takesParts?: boolean
}

/** A hub's first frame, sent again when a setting changes. */
export interface WelcomePayload {
  readonly hubId: string
  /** The hub's clock: entries' `until` is in this time. */
  readonly hubTime: number
  /** How often to report. */
  readonly intervalMs: number
  /** Threshold sampling: a lower count is sent as this with probability count / f; 1 sends everything. */
  readonly samplingFloor: number
  readonly heartbeatMs: number
}

/** Sent by the hub every `heartbeatMs`. */
export interface HeartbeatPayload {
  readonly hubTime: number
  readonly epoch: string
  /** The newest version of this sensor's table: if it is higher than the sensor's, there is a gap. */
  readonly version: number
  /** The newest sequence of the invalidation lane. */
  readonly laneHead: number
  readonly isOff: boolean
  readonly intervalMs: number
  readonly samplingFloor: number
  /**
   * True while the hub is cut off from the store that it shares with others: another hub of the list is a better
   * choice.
   */
  readonly isAlone?: boolean
  /** Clusters whose every write the hub's sources see. */
  readonly watched?: readonly WatchedCluster[]
}

/** How far the hub's sources have seen every write of a cluster. */
export interface WatchedCluster {
  readonly redisClusterId: string
  /** Everything written until this long before the heartbeat's `hubTime` precedes the heartbeat on the lane. */
  readonly completeAgoMs: number
}

/**
 * Sent by the sensor about once a second: that it is alive, what it applied, and what its shield has done since the
 * last one.
 */
export interface StatusPayload {
  readonly sentAt: number
  readonly epoch: string
  readonly version: number
  readonly isOff: boolean
  readonly counters: ShieldCounters
  /** For each hot key with something to report. */
  readonly keys: readonly KeyEffect[]
  /** Where the copies of keys are, sent when it changes and every few seconds. @default none */
  readonly copies?: readonly PlacedCopiesPayload[]
  /** Masters of each Redis, as the sensor sees them. */
  readonly nodeCounts?: Readonly<Record<string, number>>
  /** Bytes of replies in its memory; absent from earlier versions. */
  readonly cachedBytes?: number
  /** The watchers' state in words for the console, by Redis cluster. */
  readonly watchers: readonly WatcherStatus[]
  /** Its own failures since the last status. @default none */
  readonly troubles?: readonly { readonly kind: string; readonly message: string }[]
}

/** What a shield has done since its last status; all numbers are differences. */
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
  /** Increments merged into another command. @default 0 */
  readonly combined?: number
  readonly droppedReports: number
  readonly errors: number
}

/** The names under which the copies of a key are in Redis. */
export interface PlacedCopiesPayload {
  readonly redisClusterId: string
  /** The key's text. */
  readonly key: string
  /** The texts of their names. */
  readonly names: readonly string[]
  /** True if the reporting process is the one that writes them. */
  readonly isRefresher: boolean
}

/** The effect of a strategy on one key since the last status. */
export interface KeyEffect {
  readonly redisClusterId: string
  /** The key's text. */
  readonly key: string
  readonly localHits: number
  readonly redisReads: number
  readonly bytesSaved: number
  /** Mean milliseconds of a Redis read of this key, if measured. */
  readonly readMs?: number
  readonly limited: number
  /** Reads answered from copies. @default 0 */
  readonly copyReads?: number
  /** Increments merged into another command. @default 0 */
  readonly combined?: number
  readonly errors: number
  /** Largest observed staleness, if the canary has checked. */
  readonly staleMs?: number
  /** The rule that makes the key hot; sent with `staleMs`. */
  readonly ruleId?: string
}

export interface WatcherStatus {
  readonly redisClusterId: string
  readonly kind: 'tracking' | 'fallback' | 'lane' | 'none'
  readonly state: 'live' | 'connecting' | 'expired' | 'refused'
  readonly detail: string
}

/** A single process crossed a threshold and acted; the hub confirms it in its table, or withdraws it. */
export interface ClaimPayload {
  readonly redisClusterId: string
  /** The key's text. */
  readonly key: string
  readonly ruleId: string
  readonly heat: number
}

/** The hub asks a sensor about a key: it has no connection to the protected Redis itself. */
export interface InspectPayload {
  /** Identifies the request. */
  readonly id: string
  readonly redisClusterId: string
  /** The key's text. */
  readonly key: string
  /** True if the value is wanted too. */
  readonly wantsValue: boolean
}

/** What a process found; without `type` it could not look, and `problem` says why. */
export interface InspectedPayload {
  readonly id: string
  /** The type as Redis names it; `none` if the key does not exist. */
  readonly type?: string
  readonly bytes?: number
  /** Absent: no expiry. */
  readonly ttlMs?: number
  readonly encoding?: string
  /** The beginning of the value, in base64. */
  readonly value?: string
  readonly isCut?: boolean
  /** The commands on the key by this process in `heardMs`, the most frequent first. Absent: not hot there. */
  readonly commands?: readonly { readonly name: string; readonly count: number }[]
  readonly heardMs?: number
  readonly problem?: string
}

/**
 * The hub asks a process to measure the nodes of these clusters; without another such frame it stops after ten seconds.
 * An empty list stops it at once.
 */
export interface ProbePayload {
  readonly redisClusterIds: readonly string[]
  readonly everyMs: number
}

/** What a process measured about Redis nodes, sent as soon as it is known. */
export interface LoadPayload {
  readonly nodes: readonly NodeLoad[]
}

/** One node over the span since it was last asked. */
export interface NodeLoad {
  readonly redisClusterId: string
  /** `host:port` as the process reaches it. */
  readonly node: string
  /** The slots that it owns, as pairs of first and last; absent if one node owns all. */
  readonly slots?: readonly (readonly [number, number])[]
  readonly spanMs: number
  /** Commands that it processed in the span; absent if INFO is refused. */
  readonly commands?: number
  /** CPU time of its main thread in the span; of the whole process on servers that do not report it separately. */
  readonly cpuMs?: number
  /** Round-trip time to it. */
  readonly roundTripMs: number
  /** Why something is absent. */
  readonly problem?: string
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
  inspected: InspectedPayload
  load: LoadPayload
  probe: ProbePayload
  inspect: InspectPayload
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

/**
 * The payload of a JSON frame; its shape is what the other side of the same version sends, checked at the point of use.
 */
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
  /** `flush`: drop everything of the cluster (and database, unless −1). */
  readonly kind: 'keys' | 'flush'
  readonly items: readonly InvalidatedKey[]
}

export interface InvalidatedKey {
  /** The key's name. */
  readonly key: string
  /** The new value of a string key, if it is small; undefined: just drop what is cached. */
  readonly value?: Uint8Array
  /** Milliseconds that the value may live, if it has a TTL. */
  readonly ttlMs?: number
}
