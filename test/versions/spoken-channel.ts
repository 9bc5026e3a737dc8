import { decodeFrame, encodeJsonFrame } from '@firebreak/core'
import type { SensorChannel, SensorSessions } from '@firebreak/hub'

/** A sensor's connection to a hub, spoken by hand. */
export class SpokenChannel implements SensorChannel {
  readonly bufferedBytes = 0
  closed: readonly [code: number, reason: string] | undefined
  readonly #heard: Uint8Array[] = []
  #onFrame: (frame: Uint8Array) => void = () => {}

  constructor(sessions: SensorSessions) {
    sessions.open(this)
  }

  send(frame: Uint8Array): void {
    this.#heard.push(frame)
  }

  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#onFrame = listener
  }

  onClose(): void {}

  close(code: number, reason: string): void {
    this.closed = [code, reason]
  }

  hello(): void {
    const ids = { serviceId: 'shop', hostId: 'h', instanceId: 'i', agent: 'test/9', redisClusterIds: ['main'] }
    this.say(encodeJsonFrame('hello', 0, { ...ids, epoch: '', version: 0, sentAt: Date.now() }))
  }

  say(frame: Uint8Array): void {
    this.#onFrame(frame)
  }

  types(): string[] {
    return this.#heard.map((frame) => decodeFrame(frame).type)
  }
}
