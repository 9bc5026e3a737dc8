import {
  type CombineListener,
  type CombineOutcome,
  type CombineOwner,
  type CombinePart,
  type CombineWay,
  type CounterCommand,
  counterValue,
} from '@firebreak/shield'
import type { NodeRedisArgument, NodeRedisQueue } from './node-redis-client.ts'
import type { ReplyReader } from './reply-reader.ts'

/** The RESP type of a counter's answers; as text they keep all digits. */
const wholeNumber = 58

/** An increment that an application sent through node-redis, and its caller's promise. */
export function nodeRedisPart(
  command: CounterCommand,
  owner: CombineOwner,
  replies: ReplyReader,
  how: { send(): Promise<unknown>; read(reply: Buffer): unknown },
): { readonly part: CombinePart; readonly answered: Promise<unknown> } {
  const { promise, resolve, reject } = withResolvers()
  const part: CombinePart = {
    command,
    owner,
    answer: (reply) => resolve(how.read(reply)),
    fail: reject,
    sendAlone: (_, listener) => {
      const sent = how.send()
      listen(sent, listener, replies)
      resolve(sent)
    },
  }
  return { part, answered: promise }
}

/** Sends sums over one connection of node-redis. */
export class NodeRedisWay implements CombineWay {
  readonly #send: NodeRedisQueue['addCommand']
  readonly #replies: ReplyReader

  constructor(send: NodeRedisQueue['addCommand'], replies: ReplyReader) {
    this.#send = send
    this.#replies = replies
  }

  send(words: readonly (string | Uint8Array)[], _parts: readonly CombinePart[], listener: CombineListener): void {
    const args: NodeRedisArgument[] = words.map((word) => (typeof word === 'string' ? word : Buffer.from(word)))
    listen(this.#send(args, { typeMapping: { [wholeNumber]: String } }), listener, this.#replies)
  }

  defer(callback: () => void): void {
    // After everything that runs in response to the answers that have just arrived.
    process.nextTick(callback)
  }
}

/** Reports the outcome of a command; its first reaction, so that it runs before the caller learns of the answer. */
function listen(sent: Promise<unknown>, listener: CombineListener, replies: ReplyReader): void {
  sent.then(
    (reply) => {
      const value = counterValue(reply)
      listener(value === undefined ? { kind: 'lost', reason: new Error('not a number') } : { kind: 'value', value })
    },
    (error: unknown) => {
      listener(outcomeOf(error, replies))
    },
  )
}

function outcomeOf(error: unknown, replies: ReplyReader): CombineOutcome {
  try {
    // Only an answer from the server itself means that nothing was done.
    if (replies.isErrorReply(error)) return { kind: 'refused' }
  } catch {
    // The installed version does not tell.
  }
  return { kind: 'lost', reason: error }
}

function withResolvers(): {
  promise: Promise<unknown>
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
} {
  let resolve!: (value: unknown) => void
  let reject!: (reason: unknown) => void
  const promise = new Promise((onValue, onError) => {
    resolve = onValue
    reject = onError
  })
  return { promise, resolve, reject }
}
