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
} from '@firebreak/core'
import type { Instance } from '../hosts/host-register.ts'
import type { HubCore } from '../hub-core.ts'
import { claimPayload, helloPayload, statusPayload } from './sensor-payloads.ts'
import type { TableListener } from './service-view.ts'

/** The connection as a session needs it. */
export interface SensorChannel {
  send(bytes: Uint8Array): void
  /** The same for bytes that go to many sensors. */
  sendShared(bytes: Uint8Array): void
  /** Bytes that wait to be sent. */
  readonly bufferedBytes: number
  /** Ends the connection; the reason is told to the other side. */
  close(code: number, reason: string): void
}

/** Tells whose token this is; undefined: nobody's. */
export type AppTokenCheck = (token: string | undefined) => string | undefined

/** Close codes: 1002 and 1008 of RFC 6455, our own from 4000 on. */
export const closeCodes = { protocol: 1002, refused: 1008, goingAway: 1001, tooSlow: 4001, tooLarge: 1009 } as const

/** A sensor that leaves this much unread is cut off; it comes back and gets a snapshot. */
const maxBufferedBytes = 8 * 1024 * 1024
/** Broken frames in a row after which the other side is not one of ours. */
const maxBrokenFrames = 10

/** One sensor's connection: hello first, then reports, statuses and claims in, table changes and heartbeats out. */
export class SensorSession implements TableListener {
  readonly #core: HubCore
  readonly #channel: SensorChannel
  readonly #checkToken: AppTokenCheck
  /** The token of the upgrade request, where it had one. */
  readonly #headerToken: string | undefined
  #instance: Instance | undefined
  #leave: (() => void) | undefined
  #sequence = 0
  #brokenFrames = 0

  constructor(core: HubCore, channel: SensorChannel, checkToken: AppTokenCheck, headerToken?: string) {
    this.#core = core
    this.#channel = channel
    this.#checkToken = checkToken
    this.#headerToken = headerToken
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
      } else if (error instanceof FrameError) {
        this.#refuseFrame(error)
      } else {
        throw error
      }
    }
  }

  onDelta(_delta: TableDelta, frame: Uint8Array): void {
    if (this.#mayWrite()) this.#channel.sendShared(frame)
  }

  /** Bytes that are the same for every sensor. */
  forward(bytes: Uint8Array): void {
    if (this.#instance !== undefined && this.#mayWrite()) this.#channel.sendShared(bytes)
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
        this.#core.collector.collectBinary(frame.bytes, frame.payloadStart, frame.sequence)
        return
      case 'status':
        this.#core.takeStatus(instance, checked(frame, statusPayload) as StatusPayload)
        return
      case 'claim':
        this.#core.takeClaim(instance, checked(frame, claimPayload))
        return
      case 'resync':
        this.#send('snapshot', this.#core.delivery.snapshot(instance.serviceId))
        return
      default:
        throw new FrameError(`a ${frame.type} frame is the hub's to send`)
    }
  }

  #hello(frame: Frame): void {
    const hello = checked(frame, helloPayload)
    if (this.#checkToken(hello.token ?? this.#headerToken) === undefined) {
      const reason = 'the hub asks for an app token; give the sensor one of the tokens file (token)'
      this.#send('refused', { code: 'FB_TOKEN_REFUSED', reason })
      this.close(closeCodes.refused, 'app token refused')
      return
    }
    const { hosts, options, governor, delivery } = this.#core
    const now = this.#core.now()
    this.end()
    const instance = hosts.find(hello.serviceId, hello.hostId, hello.instanceId, now)
    if (instance === undefined) {
      this.#send('refused', { code: 'FB_HUB_FULL', reason: 'the hub knows as many processes as it may (maxInstances)' })
      this.close(closeCodes.refused, 'hub is full')
      return
    }
    instance.agent = hello.agent
    instance.connections++
    instance.clock.ageMs(hello.sentAt, hello.sentAt, now)
    this.#instance = instance
    const { hubId, heartbeatMs } = options
    this.#send('welcome', { hubId, hubTime: now, heartbeatMs, ...governor.pace })
    const joined = delivery.join(hello.serviceId, this)
    this.#leave = joined.leave
    this.#send('snapshot', joined.snapshot)
    this.#write(encodeHeartbeat(this.#core, hello.serviceId))
  }

  #refuseFrame(error: FrameError): void {
    this.#core.collector.countRefusal(error.message.includes('version') ? 'version' : 'unparsable')
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

/** The heartbeat of a service's sensors at this moment. */
export function encodeHeartbeat(core: HubCore, serviceId: string): Uint8Array {
  const { delivery, governor, lane } = core
  const watched = core.watchers.watched()
  return encodeJsonFrame('heartbeat', 0, {
    hubTime: core.now(),
    epoch: delivery.epoch,
    version: delivery.view(serviceId).version,
    laneHead: lane.head,
    isOff: delivery.isOff,
    ...governor.pace,
    ...(watched.length > 0 && { watched }),
  })
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
