import {
  decodeFrame,
  decodeJsonPayload,
  encodeJsonFrame,
  type Frame,
  FrameError,
  type JsonFrameType,
  type JsonPayloads,
  ReportRefusedError,
  type StatusPayload,
  type TableDelta,
  UnknownFrameError,
} from '@firebreak/core'
import type { Instance } from '../fleet/host-register.ts'
import { closeCodes, type SensorChannel } from './sensor-channel.ts'
import { claimPayload, helloPayload, statusPayload } from './sensor-payloads.ts'
import type { SensorService } from './sensor-sessions.ts'
import type { TableListener } from './service-view.ts'

/** A sensor that leaves this much unread is cut off; it comes back and gets a snapshot. */
const maxBufferedBytes = 8 * 1024 * 1024
/** Broken frames in a row after which the other side is not one of ours. */
const maxBrokenFrames = 10

/** One sensor's connection: hello first, then reports, statuses and claims in, table changes and heartbeats out. */
export class SensorSession implements TableListener {
  readonly #service: SensorService
  readonly #channel: SensorChannel
  readonly #heartbeat: (serviceId: string) => Uint8Array
  /** The token that came before hello, where one did. */
  readonly #earlyToken: string | undefined
  #instance: Instance | undefined
  #leave: (() => void) | undefined
  #sequence = 0
  #brokenFrames = 0

  /** `heartbeat` makes a service's heartbeat of this moment. */
  constructor(
    service: SensorService,
    channel: SensorChannel,
    heartbeat: (serviceId: string) => Uint8Array,
    earlyToken?: string,
  ) {
    this.#service = service
    this.#channel = channel
    this.#heartbeat = heartbeat
    this.#earlyToken = earlyToken
  }

  /** Undefined before hello. */
  get serviceId(): string | undefined {
    return this.#instance?.serviceId
  }

  /** One message of the sensor. */
  receive(bytes: Uint8Array): void {
    try {
      this.#handle(decodeFrame(bytes))
      this.#brokenFrames = 0
    } catch (error) {
      if (error instanceof ReportRefusedError) {
        this.#send('refused', { code: error.code, reason: error.message })
      } else if (error instanceof UnknownFrameError) {
        // A sensor of a later version has more to tell than this hub can use; what both know goes on.
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

  /** Tells the sensor why and ends the connection. */
  close(code: number, reason: string): void {
    this.#channel.close(code, reason)
    this.end()
  }

  #handle(frame: Frame): void {
    const instance = this.#instance
    if (frame.type === 'hello') {
      this.#hello(frame)
      return
    }
    if (instance === undefined) {
      this.#send('refused', { code: 'FB_FRAME_INVALID', reason: `a ${frame.type} frame came before hello` })
      this.close(closeCodes.refused, 'hello must come first')
      return
    }
    switch (frame.type) {
      case 'report':
        this.#service.collector.collectBinary(frame.bytes, frame.payloadStart, frame.sequence)
        return
      case 'status':
        this.#service.fleet.takeStatus(instance, checked(frame, statusPayload) as StatusPayload)
        return
      case 'claim':
        this.#service.keys.takeClaim(instance, checked(frame, claimPayload))
        return
      case 'resync':
        this.#send('snapshot', this.#service.delivery.snapshot(instance.serviceId))
        return
      default:
        throw new FrameError(`a ${frame.type} frame is the hub's to send`)
    }
  }

  #hello(frame: Frame): void {
    const hello = checked(frame, helloPayload)
    const { fleet, collector, delivery, runtime, hubId, heartbeatMs, checkToken } = this.#service
    if (checkToken(hello.token ?? this.#earlyToken) === undefined) {
      const reason = 'the hub asks for an app token; give the sensor one of the tokens file (token)'
      this.#send('refused', { code: 'FB_TOKEN_REFUSED', reason })
      this.close(closeCodes.refused, 'app token refused')
      return
    }
    // Its empty table would take away theirs, and undo a switch that was thrown; one thrown here is told.
    if (!this.#service.keys.isHeard && !delivery.isOff) {
      const reason = 'the hub has not heard from its store since it started, and knows no rules; try another hub'
      this.#send('refused', { code: 'FB_STORE_AWAY', reason })
      this.close(closeCodes.refused, 'the store is away')
      return
    }
    const now = runtime.clock.now()
    this.end()
    const instance = fleet.hosts.find(hello.serviceId, hello.hostId, hello.instanceId, now)
    if (instance === undefined) {
      this.#send('refused', { code: 'FB_HUB_FULL', reason: 'the hub knows as many processes as it may (maxInstances)' })
      this.close(closeCodes.refused, 'hub is full')
      return
    }
    instance.agent = hello.agent
    instance.connections++
    instance.clock.ageMs(hello.sentAt, hello.sentAt, now)
    this.#instance = instance
    this.#send('welcome', { hubId, hubTime: now, heartbeatMs, ...collector.governor.pace })
    const joined = delivery.join(hello.serviceId, this)
    this.#leave = joined.leave
    this.#send('snapshot', joined.snapshot)
    this.#write(this.#heartbeat(hello.serviceId))
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

  #write(bytes: Uint8Array): void {
    if (this.#mayWrite()) this.#channel.send(bytes)
  }

  /** False where the sensor reads too slowly: it was cut off. */
  #mayWrite(): boolean {
    if (this.#channel.bufferedBytes <= maxBufferedBytes) return true
    this.close(closeCodes.tooSlow, 'reads too slowly')
    return false
  }
}

/** A payload that has been looked at; a wrong field is named. */
function checked<Payload>(
  frame: Frame,
  schema: { safeParse(value: unknown): { success: true; data: Payload } | { success: false; error: SchemaError } },
): Payload {
  const result = schema.safeParse(decodeJsonPayload(frame))
  if (result.success) return result.data
  const { path, message } = result.error.issues[0]!
  throw new FrameError(
    `the field ${path.map(String).join('.') || '(all)'} of a ${frame.type} frame is wrong: ${message}`,
  )
}

interface SchemaError {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]
}
