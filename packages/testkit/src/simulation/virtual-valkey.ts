import type { TimerHandle } from '@firebreak/core'
import { type CommandArgument, ErrorReply, encodeCommand, ReplyDecoder, type RespValue } from '@firebreak/core/resp'
import type { FaultKinds } from './fault-schedule.ts'
import type { PipeEnd } from './pipe-end.ts'
import type { SimulatedProcess, SimulatedProcessOptions } from './simulated-process.ts'
import type { SimulatedWorld } from './simulated-world.ts'
import { ValkeyInstance, type ValkeyPicture, type ValkeySocket } from './valkey-instance.ts'
import { ValkeyExit } from './valkey-wasi.ts'
import type { VirtualNetwork } from './virtual-network.ts'

/** How a virtual server is set up. */
export interface VirtualValkeyOptions extends SimulatedProcessOptions {
  /** How often its cron runs: expiry of what nobody asks for, timeouts of blocked clients. @default 100 */
  readonly cronMs?: number
  /** How many lines of its own log are kept. @default 50 */
  readonly maxLogLines?: number
}

interface Door {
  readonly network: VirtualNetwork
  readonly address: string
}

/**
 * A Redis server inside a simulation: the embedded Valkey on the world's clock, behind a virtual network.
 *
 * It serves what arrives in zero time, in the event in which it arrives. It cannot fork or replicate; a failover or a
 * restart that loses writes is `picture` and `putBack`: the server holds what it held then, all connections are ended
 * and scripts are forgotten, as on a promoted replica or after a restart. For a failover to another address put the
 * picture into another server. Time is not put back: what has expired since is gone.
 */
export class VirtualValkey {
  readonly name: string
  readonly #world: SimulatedWorld
  readonly #options: VirtualValkeyOptions
  readonly #instance: ValkeyInstance
  readonly #boot: ValkeyPicture
  readonly #control: ValkeySocket
  readonly #controlReplies = new ReplyDecoder({ bulk: 'text' })
  readonly #doors: Door[] = []
  readonly #log: string[] = []
  #process: SimulatedProcess
  #cron: TimerHandle | undefined
  #isStepDue = false
  #arrivals = 0
  /** It ended itself in the middle of a step: nothing of what it holds is of use. */
  #isSpoiled = false

  constructor(world: SimulatedWorld, name: string, options: VirtualValkeyOptions = {}) {
    this.name = name
    this.#world = world
    this.#options = options
    this.#process = world.process(name, options)
    const chance = world.chance.fork(`valkey ${name}`)
    this.#instance = new ValkeyInstance({
      wallNowMs: () => this.#process.wallNowMs,
      steadyNowMs: () => world.nowMs,
      fillRandom: (bytes) => chance.fill(bytes),
      onLog: (line) => this.#keep(line),
    })
    // The first connection is the simulation's own: it is in every picture, and outlives a password that is set later.
    this.#control = this.#instance.connect({
      onData: (bytes) => this.#controlReplies.feed(bytes),
      onClose: () => {},
    })
    this.ask('CLIENT', 'SETNAME', 'simulation')
    this.#boot = this.#instance.picture()
    this.#startCron()
  }

  /** The life that it leads: freeze, thaw and clock steps go here. A restart begins another. */
  get process(): SimulatedProcess {
    return this.#process
  }

  get isRunning(): boolean {
    return this.#process.isAlive
  }

  /** The last lines of the server's own log. */
  get log(): readonly string[] {
    return this.#log
  }

  /** Reads of clients' bytes so far, as a measure of its load. */
  get arrivals(): number {
    return this.#arrivals
  }

  get memoryBytes(): number {
    return this.#instance.memoryBytes
  }

  /** Takes connections at an address, over restarts too. */
  listen(network: VirtualNetwork, address: string): this {
    this.#doors.push({ network, address })
    network.listen(this.#process, address, (end) => this.#serve(end))
    return this
  }

  /** Sends a command past the network and gives its reply at once, also while frozen or killed: for oracles. */
  ask(...args: CommandArgument[]): RespValue {
    this.#control.push(encodeCommand(args))
    this.#instance.step()
    const reply = this.#controlReplies.next()
    if (reply === undefined) throw new Error(`${this.name} does not answer ${String(args[0])}`)
    if (reply instanceof ErrorReply) throw new Error(reply.text)
    return reply
  }

  /** What it holds now. */
  picture(): ValkeyPicture {
    return this.#instance.picture()
  }

  /** It holds what it held then: writes since are lost, connections are ended, scripts are forgotten. */
  putBack(picture: ValkeyPicture): void {
    this.#process.note('holds an older picture')
    this.#instance.putBack(picture, this.#control)
    this.ask('SCRIPT', 'FLUSH')
  }

  /** Nothing of it is left but its address, which refuses. */
  kill(): void {
    if (!this.isRunning) return
    this.#cron?.cancel()
    this.#isStepDue = false
    this.#process.kill()
  }

  /** Starts it again after `kill`: with what it held (nothing after SHUTDOWN), with an older picture, or empty. */
  start(holding: 'everything' | 'nothing' | ValkeyPicture = 'everything'): void {
    if (this.isRunning) return
    this.#process = this.#world.process(this.name, this.#options)
    if (typeof holding === 'object') this.putBack(holding)
    else this.putBack(holding === 'nothing' || this.#isSpoiled ? this.#boot : this.picture())
    this.#isSpoiled = false
    this.#startCron()
    for (const { network, address } of this.#doors) network.listen(this.#process, address, (end) => this.#serve(end))
  }

  /**
   * Kinds of faults for a `FaultPlayer`, on this server's name: `freeze`, `kill` (with `forMs` it comes back holding
   * everything), `killEmpty` (it comes back empty), `loseWrites` (what is written in the next `amount` milliseconds, 100
   * without it, is lost at their end), `clockStep` (its wall clock goes `amount` milliseconds forward).
   */
  get faults(): FaultKinds {
    const mine =
      (act: (amount: number | undefined) => (() => void) | undefined) =>
      ({ target, amount }: { readonly target: string; readonly amount?: number }) =>
        target === this.name || target === '*' ? act(amount) : undefined
    return {
      freeze: mine(() => {
        this.#process.freeze()
        const frozen = this.#process
        return () => frozen.thaw()
      }),
      kill: mine(() => {
        this.kill()
        return () => this.start()
      }),
      killEmpty: mine(() => {
        this.kill()
        return () => this.start('nothing')
      }),
      loseWrites: mine((amount = 100) => {
        const picture = this.picture()
        this.#world.schedule(amount, () => {
          if (this.isRunning) this.putBack(picture)
        })
        return undefined
      }),
      clockStep: mine((amount = 1000) => {
        this.#process.stepWallClock(amount)
        return undefined
      }),
    }
  }

  #serve(end: PipeEnd): void {
    const socket = this.#instance.connect({
      onData: (bytes) => {
        if (!end.write(bytes)) socket.isWritable = false
      },
      onClose: () => end.end(),
    })
    end.onData = (bytes) => {
      this.#arrivals++
      socket.push(bytes)
      this.#wake()
    }
    end.onDrain = () => {
      socket.isWritable = true
      this.#wake()
    }
    end.onClose = () => {
      socket.end()
      this.#wake()
    }
    this.#wake()
  }

  /** Everything that arrives at one instant is served in one step. */
  #wake(): void {
    if (this.#isStepDue) return
    this.#isStepDue = true
    this.#process.schedule(0, () => this.#step())
  }

  #step(): void {
    this.#isStepDue = false
    try {
      this.#instance.step()
    } catch (error) {
      if (!(error instanceof ValkeyExit)) throw new Error(`${this.name} failed: ${this.#log.at(-1)}`, { cause: error })
      this.#process.note('ended itself')
      this.#isSpoiled = true
      this.kill()
    }
  }

  #startCron(): void {
    this.#isStepDue = false
    this.#cron = this.#process.runtime.timers.setInterval(() => this.#step(), this.#options.cronMs ?? 100)
  }

  #keep(line: string): void {
    this.#log.push(line)
    if (this.#log.length > (this.#options.maxLogLines ?? 50)) this.#log.shift()
  }
}
