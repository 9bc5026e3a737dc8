import {
  type ClaimPayload,
  decodeFrame,
  decodeJsonPayload,
  encodeJsonFrame,
  type Frame,
  FrameError,
  type InspectedPayload,
  type JsonFrameType,
  type JsonPayloads,
  type LoadPayload,
  type NodeLoad,
  type PlacedCopiesPayload,
  type ProbePayload,
  parseKeyText,
  ReportRefusedError,
  type StatusPayload,
  type TableDelta,
  type TableSnapshot,
  UnknownFrameError,
} from '@firebreak/core'
import { type AppGrant, checkCluster, checkService, ScopeError } from '../access/credential.ts'
import { ApiProblem } from '../errors.ts'
import { SensorBarredError } from '../fleet/barred-sensors.ts'
import type { Instance } from '../fleet/host-register.ts'
import { idOf, SensorBoundsError } from '../fleet/sensor-bounds.ts'
import type { InspectedSensor } from './inspections.ts'
import { closeCodes, type SensorChannel } from './sensor-channel.ts'
import { claimPayload, helloPayload, inspectedPayload, loadPayload, statusPayload } from './sensor-payloads.ts'
import type { LetIn, SensorService } from './sensor-sessions.ts'
import type { TableListener } from './service-view.ts'
import { snapshotParts } from './table-parts.ts'

/** A sensor that leaves this much unread beside its table is cut off; it reconnects and gets a snapshot. */
const maxBufferedBytes = 8 * 1024 * 1024
/** After this many broken frames in a row the other side is not one of ours. */
const maxBrokenFrames = 10

/** Largest JSON frame: a status of ten thousand keys with long names. */
const maxJsonBytes = 8 * 1024 * 1024

/** Keys with longer names are counted and handled, but their strategies' effect is not reported. */
const maxKeyText = 65_536

const none: ReadonlySet<string> = new Set()

/** A sensor's measurements. */
type TakeLoad = (session: SensorSession, nodes: readonly NodeLoad[], hostId: string) => void

/** One sensor's connection: hello first, then reports, statuses and claims in, table changes and heartbeats out. */
export class SensorSession implements TableListener {
  readonly #service: SensorService
  readonly #channel: SensorChannel
  readonly #heartbeat: (serviceId: string) => Uint8Array
  readonly #letIn: LetIn
  readonly #takeLoad: TakeLoad
  #grant: AppGrant | undefined
  #instance: Instance | undefined
  #leave: (() => void) | undefined
  /** Clusters whose keys it can be asked about. */
  #inspectable: readonly string[] | undefined
  /** Clusters whose nodes it can measure. */
  #measurable: ReadonlySet<string> | undefined
  #takesParts = false
  /** The bytes of the last table that it was sent whole. */
  #tableBytes = 0
  #sequence = 0
  #brokenFrames = 0

  /** `heartbeat` makes a service's heartbeat of this moment. */
  constructor(
    service: SensorService,
    channel: SensorChannel,
    heartbeat: (serviceId: string) => Uint8Array,
    letIn: LetIn,
    takeLoad: TakeLoad,
  ) {
    this.#service = service
    this.#channel = channel
    this.#heartbeat = heartbeat
    this.#letIn = letIn
    this.#takeLoad = takeLoad
  }

  /** The process that said hello; undefined before that and after its end. */
  get instance(): Instance | undefined {
    return this.#instance
  }

  /** Undefined before hello. */
  get serviceId(): string | undefined {
    return this.#instance?.serviceId
  }

  /** Undefined before hello, or if it cannot be asked about keys. */
  get inspected(): InspectedSensor | undefined {
    const instance = this.#instance
    if (instance === undefined || this.#inspectable === undefined) return undefined
    return {
      serviceId: instance.serviceId,
      hostId: instance.hostId,
      redisClusterIds: this.#inspectable,
      ask: (id, redisClusterId, key, wantsValue) => this.#send('inspect', { id, redisClusterId, key, wantsValue }),
    }
  }

  /** Empty before hello. */
  get hostId(): string {
    return this.#instance?.hostId ?? ''
  }

  /** Clusters whose nodes it can be asked to measure; none before hello, or for earlier versions. */
  get measurable(): ReadonlySet<string> {
    return this.#instance === undefined ? none : (this.#measurable ?? none)
  }

  /** Asks it to measure nodes. */
  probe(payload: ProbePayload): void {
    this.#send('probe', payload)
  }

  /** One message of the sensor. */
  receive(bytes: Uint8Array): void {
    try {
      const { fleet, runtime } = this.#service
      // Also for one that is broken or of an unknown type.
      if (this.#instance !== undefined) fleet.checkFrame(this.#grant!, this.#instance, 'any', runtime.clock.now())
      this.#handle(decodeFrame(bytes))
      this.#brokenFrames = 0
    } catch (error) {
      if (error instanceof ReportRefusedError) {
        this.#send('refused', { code: error.code, reason: error.message })
      } else if (error instanceof SensorBoundsError || error instanceof SensorBarredError) {
        this.#send('refused', { code: error.code, reason: error.message })
        this.close(closeCodes.refused, error instanceof SensorBarredError ? 'barred' : 'over its limits')
      } else if (error instanceof ScopeError) {
        this.#send('refused', { code: error.code, reason: error.message })
        if (this.#instance === undefined) this.close(closeCodes.refused, 'not of this token')
      } else if (error instanceof UnknownFrameError) {
        // A sensor of a later version may send more than this hub understands; what both know still works.
        this.#service.collector.countRefusal('version')
      } else if (error instanceof FrameError) {
        this.#refuseFrame(error)
      } else {
        throw error
      }
    }
  }

  onDelta(_delta: TableDelta, frame: Uint8Array): void {
    if (this.#mayWrite()) this.#channel.send(frame, true)
  }

  /** Bytes that are the same for every sensor. */
  forward(bytes: Uint8Array): void {
    if (this.#instance !== undefined && this.#mayWrite()) this.#channel.send(bytes, true)
  }

  /** The connection has ended. */
  end(): void {
    this.#leave?.()
    this.#leave = undefined
    if (this.#instance !== undefined) this.#instance.connections--
    this.#instance = undefined
  }

  /** Ends a connection whose token or certificate is no longer accepted. */
  checkGrant(): void {
    if (this.#instance !== undefined) {
      try {
        this.#service.barred.check(this.#instance)
      } catch (error) {
        const { code, message } = error as SensorBarredError
        this.#send('refused', { code, reason: message })
        this.close(closeCodes.refused, 'barred')
      }
    }
    if (this.#grant === undefined || this.#grant.isValid()) return
    const reason = 'the app token was revoked or has expired; give the sensor another (token)'
    this.#send('refused', { code: 'FB_TOKEN_REFUSED', reason })
    this.close(closeCodes.refused, 'app token revoked')
  }

  /** Tells the sensor why and ends the connection. */
  close(code: number, reason: string): void {
    this.#channel.close(code, reason)
    this.end()
  }

  /** Where a key's copies are; only for keys that the service touches, and only if keys are not redacted. */
  #placed(
    { serviceId }: Instance,
    { redisClusterId, key: text, names: texts, isRefresher }: PlacedCopiesPayload,
  ): void {
    const { delivery, runtime, outside } = this.#service
    const key = parseKeyText(text)
    if (key === undefined || outside(text) !== text || !delivery.view(serviceId).has(redisClusterId, key)) return
    const names = texts.map(parseKeyText).filter((name) => name !== undefined)
    delivery.setPlaced(redisClusterId, key, names, isRefresher, runtime.clock.now())
  }

  #handle(frame: Frame): void {
    const instance = this.#instance
    if (frame.type === 'hello') {
      this.#hello(frame)
      return
    }
    if (instance === undefined) {
      this.#send('refused', { code: 'FB_FRAME_INVALID', reason: `a ${frame.type} frame arrived before hello` })
      this.close(closeCodes.refused, 'hello must come first')
      return
    }
    const grant = this.#grant!
    // Let in only to hear of the switch: the store, which may contain tokens, has not been heard from yet.
    if (!this.#service.keys.isHeard) return
    // Bytes of reports are counted with the reports, over whatever transport.
    if (frame.type !== 'report')
      this.#service.fleet.checkFrameBytes(grant, instance, frame.bytes.length, this.#service.runtime.clock.now())
    switch (frame.type) {
      case 'report':
        this.#service.collector.collectBinary(frame.bytes, frame.payloadStart, frame.sequence, grant, instance)
        return
      case 'status': {
        const status = checked(frame, statusPayload) as StatusPayload
        const { keys: effects, watchers, nodeCounts = {}, copies = [] } = status
        this.#checkClusters(instance, [...clustersOf([...effects, ...watchers, ...copies]), ...Object.keys(nodeCounts)])
        // Clusters that the process started using after its hello.
        if (this.#measurable !== undefined && status.nodeCounts !== undefined)
          this.#measurable = new Set(Object.keys(status.nodeCounts))
        const keys = effects
          .filter(isOfOrdinaryLength)
          .map((effect) => ({ ...effect, key: this.#service.outside(effect.key) }))
        this.#service.fleet.takeStatus(instance, { ...status, keys })
        for (const placed of copies.filter(isOfOrdinaryLength)) this.#placed(instance, placed)
        return
      }
      case 'claim': {
        const given = checked(frame, claimPayload)
        const claim = { ...given, key: this.#service.outside(given.key) }
        checkCluster(grant, claim.redisClusterId)
        this.#service.fleet.checkClaim(grant, instance, this.#service.runtime.clock.now())
        this.#claim(instance, claim)
        return
      }
      case 'load': {
        const { nodes } = checked(frame, loadPayload) as LoadPayload
        this.#checkClusters(instance, clustersOf(nodes))
        this.#takeLoad(this, nodes, instance.hostId)
        return
      }
      case 'inspected':
        this.#service.inspections.answered(checked(frame, inspectedPayload) as InspectedPayload)
        return
      case 'resync':
        this.#service.fleet.checkFrame(grant, instance, 'resync', this.#service.runtime.clock.now())
        this.#sendTable(this.#service.delivery.snapshot(instance.serviceId))
        return
      default:
        throw new FrameError(`a ${frame.type} frame may only be sent by the hub`)
    }
  }

  /** Whether the process may name these clusters, and this many. */
  #checkClusters(instance: Instance, names: Iterable<string>): void {
    const distinct = new Set(names)
    for (const name of distinct) checkCluster(this.#grant!, name)
    this.#service.fleet.checkClusters(this.#grant!, instance, distinct, this.#service.runtime.clock.now())
  }

  #hello(frame: Frame): void {
    const hello = checked(frame, helloPayload)
    const { fleet, collector, delivery, runtime, hubId, heartbeatMs } = this.#service
    const grant = this.#letIn(hello.token)
    if (grant instanceof ApiProblem) {
      this.#send('refused', { code: grant.code, reason: grant.message })
      this.close(closeCodes.refused, `app token ${grant.code === 'FB_TOKEN_MISSING' ? 'missing' : 'refused'}`)
      return
    }
    // Its empty table would remove theirs and reset the switch; a switch thrown here is sent.
    if (!this.#service.keys.isHeard && !delivery.isOff) {
      const reason = 'the hub has not heard from its store since it started, and knows no rules; try another hub'
      this.#send('refused', { code: 'FB_STORE_AWAY', reason })
      this.close(closeCodes.refused, 'the store is unreachable')
      return
    }
    const now = runtime.clock.now()
    this.end()
    checkService(grant, hello.serviceId)
    for (const redisClusterId of hello.redisClusterIds) checkCluster(grant, redisClusterId)
    this.#service.barred.check(hello)
    fleet.bounds.checkCutOff(hello, now)
    fleet.tokenProcesses.check(grant, idOf(hello), now)
    this.#grant = grant
    const instance = fleet.hosts.find(hello.serviceId, hello.hostId, hello.instanceId, now)
    if (instance === undefined) {
      this.#send('refused', {
        code: 'FB_HUB_FULL',
        reason: 'the hub has reached its maximum number of processes (maxInstances)',
      })
      this.close(closeCodes.refused, 'hub is full')
      return
    }
    fleet.checkFrame(grant, instance, 'hello', now)
    fleet.checkClusters(grant, instance, hello.redisClusterIds, now)
    for (const redisClusterId of hello.redisClusterIds) fleet.hosts.seeCluster(redisClusterId, now)
    instance.agent = hello.agent
    this.#inspectable = hello.canInspect ? hello.redisClusterIds : undefined
    this.#measurable = hello.canProbe ? new Set(hello.redisClusterIds) : undefined
    this.#takesParts = hello.takesParts
    instance.connections++
    instance.clock.ageMs(hello.sentAt, hello.sentAt, now)
    this.#instance = instance
    this.#send('welcome', { hubId, hubTime: now, heartbeatMs, ...collector.governor.pace })
    const joined = delivery.join(hello.serviceId, this)
    this.#leave = joined.leave
    this.#sendTable(joined.snapshot)
    this.#write(this.#heartbeat(hello.serviceId))
  }

  /**
   * A claim counts only for keys that the process has reported. The report of the same moment may still be in transit:
   * the claim waits for it for two intervals.
   */
  #claim(instance: Instance, claim: ClaimPayload): void {
    const { keys, collector, runtime } = this.#service
    if (keys.hasReported(instance, claim)) {
      keys.takeClaim(instance, claim)
      return
    }
    const waitMs = collector.governor.pace.intervalMs * 2 + 50
    runtime.timers.setTimeout(() => {
      if (this.#instance !== instance) return
      if (keys.hasReported(instance, claim)) keys.takeClaim(instance, claim)
      else keys.takeBackClaim(instance, claim, 'it has not reported the key')
    }, waitMs)
  }

  #refuseFrame(error: FrameError): void {
    this.#service.collector.countRefusal(error.message.includes('version') ? 'version' : 'unparsable')
    this.#send('refused', { code: error.code, reason: error.message })
    this.#brokenFrames++
    if (this.#brokenFrames >= maxBrokenFrames) this.close(closeCodes.protocol, 'too many broken frames')
  }

  #send<Type extends JsonFrameType>(type: Type, payload: JsonPayloads[Type]): void {
    this.#write(encodeJsonFrame(type, ++this.#sequence, payload))
  }

  #sendTable(snapshot: TableSnapshot): void {
    this.#tableBytes = 0
    for (const part of this.#takesParts ? snapshotParts(snapshot) : [snapshot]) {
      const frame = encodeJsonFrame('snapshot', ++this.#sequence, part)
      this.#tableBytes += frame.length
      this.#write(frame)
    }
  }

  #write(bytes: Uint8Array): void {
    if (this.#mayWrite()) this.#channel.send(bytes)
  }

  /** False if the sensor read too slowly and was cut off. */
  #mayWrite(): boolean {
    // However large the table is, nobody is slow for not having read all of it at once.
    if (this.#channel.bufferedBytes <= maxBufferedBytes + this.#tableBytes) return true
    this.close(closeCodes.tooSlow, 'reads too slowly')
    return false
  }
}

/** Names are read character by character: names too long to be genuine are ignored. */
function isOfOrdinaryLength({ key }: { readonly key: string }): boolean {
  return key.length <= maxKeyText
}

function clustersOf(named: readonly { readonly redisClusterId: string }[]): string[] {
  return named.map(({ redisClusterId }) => redisClusterId)
}

/** A validated payload; an invalid field is named. */
function checked<Payload>(
  frame: Frame,
  schema: { safeParse(value: unknown): { success: true; data: Payload } | { success: false; error: SchemaError } },
): Payload {
  if (frame.bytes.length > maxJsonBytes)
    throw new FrameError(`a ${frame.type} frame has ${frame.bytes.length} bytes; the hub accepts ${maxJsonBytes}`)
  const result = schema.safeParse(decodeJsonPayload(frame))
  if (result.success) return result.data
  const { path, message } = result.error.issues[0]!
  throw new FrameError(
    `the field ${path.map(String).join('.') || '(all)'} of a ${frame.type} frame is invalid: ${message}`,
  )
}

interface SchemaError {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]
}
