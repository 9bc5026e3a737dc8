import { decodeFrame, decodeJsonPayload, encodeFrame, encodeJsonFrame, parseBinaryReport } from '@firebreak/core'
import type { SimulatedProcess, SimulatedWorld, VirtualNetwork } from '@firebreak/testkit'
import { frameOf, type Recording, recordingOf, versions } from '../../versions/recording.ts'
import { BrokenLaw } from '../oracles/laws.ts'
import { hubNames } from './fleet-faults.ts'

/** How a version speaks: its hello, and one of the frames that it sends later. */
interface Speech {
  readonly hello: (now: number) => Uint8Array
  readonly next: (process: SimulatedProcess) => Uint8Array
}

/** What an earlier version said, as it was recorded. */
export function recordedSpeech(version: string): Speech {
  const recording: Recording = recordingOf(version)
  const later = ['status', 'claim', 'resync', 'report'] as const
  return {
    hello: () => frameOf(recording, 'hello'),
    next: ({ chance }) => frameOf(recording, chance.pick(later)),
  }
}

/** What a version may say that is not there yet: frames and fields that nobody knows. */
const laterSpeech: Speech = {
  hello(now) {
    const ids = { serviceId: 'shop', hostId: 'later', instanceId: 'later', agent: 'client/9.0.0', mood: 'good' }
    return encodeJsonFrame('hello', 0, { ...ids, redisClusterIds: ['main'], epoch: '', version: 0, sentAt: now })
  },
  next({ chance, runtime }) {
    if (chance.happens(0.5)) {
      const unknown = encodeFrame('report', 0, new Uint8Array([1, 2, 3]))
      // The type of a frame that does not exist yet.
      unknown[1] = 15
      return unknown
    }
    const watchers = [{ redisClusterId: 'main', kind: 'quantum', state: 'entangled', detail: '' }]
    const known = { sentAt: runtime.clock.now(), epoch: '', version: 0, isOff: false, counters: {}, keys: [], watchers }
    return encodeJsonFrame('status', 0, { ...known, mood: 'good' } as never)
  },
}

/** Sensors of other versions, in the midst of a rolling upgrade. */
export const otherVersions: Readonly<Record<string, Speech>> = {
  ...Object.fromEntries(versions.map((version) => [`version-${version}`, recordedSpeech(version)])),
  'version-later': laterSpeech,
}

/** A process of another version: it goes from hub to hub and says what it has to say, whatever it is told. */
export class OtherVersion {
  readonly name: string
  readonly #world: SimulatedWorld
  readonly #network: VirtualNetwork
  readonly #speech: Speech
  readonly #reported: (accesses: number) => void
  #process!: SimulatedProcess

  constructor(world: SimulatedWorld, network: VirtualNetwork, name: string, reported: (accesses: number) => void) {
    this.name = name
    this.#world = world
    this.#network = network
    this.#speech = otherVersions[name]!
    this.#reported = reported
    this.restart()
  }

  current(): SimulatedProcess {
    return this.#process
  }

  restart(): void {
    const process = this.#world.process(this.name)
    this.#process = process
    process.start(async () => {
      for (let hub = process.chance.below(2); ; hub++) {
        await this.#talk(process, hubNames[hub % hubNames.length]!)
        await process.sleep(process.chance.between(100, 600))
      }
    })
  }

  /** One connection, until it ends or there was enough said. */
  async #talk(process: SimulatedProcess, hub: string): Promise<void> {
    let isOpen = false
    let isOver = false
    const end = this.#network.connect(process, `${hub}:7070`, { isFramed: true })
    end.onConnect = () => {
      isOpen = true
      end.write(this.#speech.hello(process.runtime.clock.now()))
    }
    end.onData = (bytes) => this.#heard(hub, bytes)
    end.onClose = () => {
      isOver = true
    }
    for (let left = process.chance.between(2000, 8000); left > 0 && !isOver; ) {
      const pauseMs = process.chance.between(100, 900)
      await process.sleep(pauseMs)
      left -= pauseMs
      if (isOpen && !isOver) this.#say(end, this.#speech.next(process))
    }
    if (!isOver) end.destroy()
  }

  #say(end: { write(bytes: Uint8Array): unknown }, bytes: Uint8Array): void {
    const frame = isKnown(bytes) ? decodeFrame(bytes) : undefined
    if (frame?.type === 'report') {
      for (const { totalCount } of parseBinaryReport(bytes.subarray(frame.payloadStart)).sections)
        this.#reported(totalCount ?? 0)
    }
    end.write(bytes)
  }

  #heard(hub: string, bytes: Uint8Array): void {
    const frame = decodeFrame(bytes)
    if (frame.type !== 'refused') return
    const { code, reason } = decodeJsonPayload<'refused'>(frame)
    // A hub that knows no rules yet takes nobody in, and a recorded report is as old as it says.
    if (code === 'FB_STORE_AWAY' || code === 'FB_REPORT_REFUSED') return
    this.#world.fail(new BrokenLaw('versions', `${hub} refused ${this.name}: ${code}: ${reason}`))
  }
}

function isKnown(bytes: Uint8Array): boolean {
  return bytes[1] !== 15
}
