import { type SimulatedProcess, SimulatedRedis, type SimulatedWorld, type VirtualValkey } from '@firebreak/testkit'

type Picture = ReturnType<VirtualValkey['picture']>

/**
 * The replica of a simulated Redis: it holds what its master held a while ago, and takes its place. (The simulated server
 * cannot replicate; what it is promoted to is a picture of itself.)
 */
export class Replica {
  readonly #world: SimulatedWorld
  readonly #master: VirtualValkey
  #picture: Picture
  #heardAt = 0
  #isBehind = false
  /** How often it has taken its master's place. */
  promotions = 0

  constructor(world: SimulatedWorld, master: VirtualValkey) {
    this.#world = world
    this.#master = master
    this.#picture = master.picture()
    const chance = world.chance.fork('replica')
    const hear = (): void => {
      if (!this.#isBehind && master.isRunning) this.#hear()
      world.schedule(chance.between(5, 90), hear)
    }
    hear()
  }

  /** It hears nothing until this is undone. */
  fallBehind(): () => void {
    this.#isBehind = true
    return () => {
      this.#isBehind = false
    }
  }

  /** Its master is gone, and it goes on from what it has; a new replica has all of that at once. */
  promote(): void {
    if (!this.#master.isRunning) return
    this.promotions++
    this.#master.putBack(this.#picture)
    this.#hear()
  }

  #hear(): void {
    this.#picture = this.#master.picture()
    this.#heardAt = this.#world.elapsedMs
  }

  /** True once it has all that its master held at a time; or a new master has been asked in its place, which waits for nothing. */
  async has(since: number, promotions: number, timeoutMs: number, process: SimulatedProcess): Promise<boolean> {
    const until = since + timeoutMs
    for (;;) {
      if (this.promotions !== promotions || this.#heardAt >= since) return true
      if (this.#world.elapsedMs >= until) return false
      await process.sleep(5)
    }
  }
}

/** A client whose `WAIT` waits for such a replica. With `isSilent` it follows a promotion without a word, as on a cluster. */
export class ReplicatedRedis extends SimulatedRedis {
  readonly #process: SimulatedProcess
  readonly #replica: Replica
  readonly #isSilent: boolean
  /** A connection that waits answers nothing else. */
  #waiting: Promise<unknown> | undefined

  constructor(
    process: SimulatedProcess,
    replica: Replica,
    isSilent: boolean,
    ...rest: ConstructorParameters<typeof SimulatedRedis> extends [unknown, ...infer Rest] ? Rest : never
  ) {
    super(process, ...rest)
    this.#process = process
    this.#replica = replica
    this.#isSilent = isSilent
    if (isSilent) Object.defineProperty(this, 'topology', { value: 'sentinel' })
  }

  override async send(...call: Parameters<SimulatedRedis['send']>): ReturnType<SimulatedRedis['send']> {
    const [[name, , timeoutMs]] = call
    while (this.#waiting !== undefined) await this.#waiting
    if (name !== 'WAIT') return super.send(...call)
    const isKept = this.#wait(Number(timeoutMs))
    this.#waiting = isKept
      .catch(() => {})
      .finally(() => {
        this.#waiting = undefined
      })
    return (await isKept) ? 1 : 0
  }

  override async run(...call: Parameters<SimulatedRedis['run']>): ReturnType<SimulatedRedis['run']> {
    while (this.#waiting !== undefined) await this.#waiting
    return super.run(...call)
  }

  async #wait(timeoutMs: number): Promise<boolean> {
    const { promotions } = this.#replica
    // Behind all that was sent before it.
    await super.send(['PING'])
    return this.#replica.has(this.#process.world.elapsedMs, promotions, timeoutMs, this.#process)
  }

  override onReconnect(listener: () => void): () => void {
    return this.#isSilent ? () => {} : super.onReconnect(listener)
  }
}
