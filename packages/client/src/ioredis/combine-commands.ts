import {
  type CombineListener,
  type CombineOutcome,
  type CombineOwner,
  type CombinePart,
  type CombineWay,
  type CounterCommand,
  counterValue,
} from '@firebreak/shield'
import type { IoredisCommand, IoredisCommandClass } from './ioredis-client.ts'

/** An increment that an application sent through ioredis. */
export class IoredisPart implements CombinePart {
  readonly command: CounterCommand
  readonly owner: CombineOwner
  /** The command that ioredis built from the call. */
  readonly sent: IoredisCommand
  readonly #how: { send(): void; answer(reply: Buffer): void }

  constructor(
    command: CounterCommand,
    owner: CombineOwner,
    sent: IoredisCommand,
    how: { send(): void; answer(reply: Buffer): void },
  ) {
    this.command = command
    this.owner = owner
    this.sent = sent
    this.#how = how
  }

  answer(reply: Buffer): void {
    this.#how.answer(reply)
  }

  fail(reason: unknown): void {
    this.sent.reject(reason)
  }

  sendAlone(_words: readonly (string | Uint8Array)[], listener: CombineListener): void {
    listen(this.sent, listener)
    this.#how.send()
  }
}

/** Sends sums over the connection of one ioredis client. */
export class IoredisWay implements CombineWay {
  readonly #send: (command: IoredisCommand) => void

  constructor(send: (command: IoredisCommand) => void) {
    this.#send = send
  }

  send(
    [name, ...words]: readonly [string, ...(string | Uint8Array)[]],
    parts: readonly CombinePart[],
    listener: CombineListener,
  ): void {
    const Command = (parts[0] as IoredisPart).sent.constructor as IoredisCommandClass
    const args = words.map((word) => (typeof word === 'string' ? word : Buffer.from(word)))
    const command = new Command(name.toLowerCase(), args, { replyEncoding: null })
    listen(command, listener)
    // Each caller gets its own result; nobody waits for the sum.
    command.promise.catch(() => {})
    this.#send(command)
  }

  defer(callback: () => void): void {
    // After everything that runs in response to the answers that have just arrived.
    process.nextTick(callback)
  }
}

/** Reports the outcome of a command, before its caller learns of it. */
function listen(command: IoredisCommand, listener: CombineListener): void {
  const { resolve, reject } = command
  let isTold = false
  const tell = (outcome: CombineOutcome) => {
    if (!isTold) listener(outcome)
    isTold = true
  }
  command.resolve = (value) => {
    const number = counterValue(value)
    tell(number === undefined ? { kind: 'lost', reason: new Error('not a number') } : { kind: 'value', value: number })
    return resolve.call(command, value)
  }
  command.reject = (error) => {
    // Only an answer from the server itself means that nothing was done.
    const isReply = error instanceof Error && error.name === 'ReplyError'
    tell(isReply ? { kind: 'refused' } : { kind: 'lost', reason: error })
    return reject.call(command, error)
  }
}
