import type { HotKey } from '@firebreak/shield'
import type { SimulatedProcess, SimulatedRedis } from '@firebreak/testkit'
import type { CallOracle } from '../oracles/call-oracle.ts'
import type { ReadOracle } from '../oracles/read-oracle.ts'
import { kindOf, passing, passingMs, versioned } from './keys.ts'

/** Sends one command; returns where the reply came from. */
export type Send = (...words: [string, ...string[]]) => Promise<{ readonly value: unknown; readonly by: string }>

/** A caller: its identity, what is between it and Redis, and who is notified of its calls. */
export interface Caller {
  readonly process: SimulatedProcess
  /** A client's own name: after a restart it is another client. */
  readonly client: string
  readonly path: readonly string[]
  readonly send: Send
  /** As a command in a pipeline; by default like any other. */
  readonly sendPiped?: Send
  readonly reads: ReadOracle
  readonly calls: CallOracle
  /** Which keys are popular. */
  readonly focus: () => readonly string[]
  readonly isOver: () => boolean
  /** Which share of the usual writes is made now. */
  readonly writeShare: () => number
  /** The key in its hot form; undefined if it is not hot, or nobody has asked for it yet. */
  readonly hotOf: (key: string) => HotKey | undefined
  /** One access of a key is sent. */
  readonly onAccess: (key: string) => void
}

const loops = 2
/** How often a read is part of a pipeline. */
const pipedProbability = 0.15
/** Now and then one process has a key all to itself, so that it alone makes it hot. */
const greed = { everyMs: [1500, 6000], forMs: [700, 2500], pauseMs: [4, 20] } as const
/** The most reads that a caller has in flight without waiting for them. */
const maxReading = 30

/** The pause between two writes of a program without Firebreak. */
const plainPauseMs = [60, 400] as const

/** Writes now and then, like an unprotected job: only the guards report its changes. */
export function startPlainWriting(caller: Caller): void {
  const { process, writeShare } = caller
  process.start(async () => {
    while (!caller.isOver()) {
      const key = process.chance.pick(caller.focus())
      if (!key.startsWith('ttl:')) await call(caller, kindOf(key).write(key), 'write', key)
      // Not slowed down when others write less: nobody else may write at all then.
      await process.sleep(process.chance.between(...plainPauseMs) / Math.sqrt(writeShare()))
    }
  })
}

/** Lets a caller read and write until it is over. */
export function startWork(caller: Caller): void {
  for (let loop = 0; loop < loops; loop++) {
    caller.process.start(async () => {
      const { process } = caller
      while (!caller.isOver()) {
        await step(caller)
        await process.sleep(process.chance.between(2, 24))
      }
    })
  }
  startReading(caller)
  startGreed(caller)
}

/** Reads one key so often that this caller's accesses alone make it hot. */
function startGreed(caller: Caller): void {
  const { process } = caller
  const { chance } = process
  process.start(async () => {
    while (!caller.isOver()) {
      await process.sleep(chance.between(...greed.everyMs))
      const key = chance.pick(versioned)
      const end = process.world.elapsedMs + chance.between(...greed.forMs)
      while (process.world.elapsedMs < end && !caller.isOver()) {
        await call(caller, kindOf(key).read(key), 'read', key)
        await process.sleep(chance.between(...greed.pauseMs))
      }
    }
  })
}

/** Reads popular keys, even while earlier reads hang: memory still answers what it has. */
function startReading(caller: Caller): void {
  const { process } = caller
  let reading = 0
  process.start(async () => {
    while (!caller.isOver()) {
      const key = process.chance.pick(caller.focus())
      if (reading < maxReading && !key.startsWith('ttl:')) {
        reading++
        const reader = process.chance.happens(pipedProbability) ? piped(caller) : caller
        process.start(() => call(reader, kindOf(key).read(key), 'read', key).finally(() => void reading--))
      }
      await process.sleep(process.chance.between(4, 28))
    }
  })
}

function piped(caller: Caller): Caller {
  return { ...caller, send: caller.sendPiped ?? caller.send }
}

async function step(caller: Caller): Promise<void> {
  const { chance } = caller.process
  const key = chance.happens(0.85) ? chance.pick(caller.focus()) : chance.pick([...versioned, ...passing])
  if (key.startsWith('ttl:')) return passingStep(caller, key)
  const dice = chance.next() / caller.writeShare()
  if (key.startsWith('limit:')) await call(caller, ['GET', key], 'read', key)
  else if (dice < 0.06) await call(caller, kindOf(key).write(key), 'write', key)
  else if (dice < 0.09) await writeThenRead(caller, key)
  else await call(caller, kindOf(key).read(key), 'read', key)
}

async function passingStep(caller: Caller, key: string): Promise<void> {
  const { process, reads, client } = caller
  const begunAtMs = process.world.elapsedMs
  // Rarely enough for the value to expire while it is popular.
  if (process.chance.happens(0.008)) {
    const value = process.runtime.newId()
    const reply = await told(caller, ['SET', key, value, 'PX', String(passingMs)])
    if (reply !== undefined) reads.setPassing(value)
    return
  }
  const reply = await told(caller, ['GET', key])
  if (reply !== undefined) reads.readPassing(client, key, reply.value, begunAtMs, reply.by)
}

/** Two commands in one turn, without waiting for the first. */
async function writeThenRead(caller: Caller, key: string): Promise<void> {
  const { reads, client } = caller
  const wasUnderWay = underWay(caller, key)
  const writing = reads.begin(client, key, true)
  const written = told(caller, kindOf(key).write(key))
  const reading = reads.begin(client, key, false)
  const read = told(caller, kindOf(key).read(key))
  const version = await written
  if (version !== undefined) reads.wrote(writing, version.value, wasUnderWay())
  const reply = await read
  if (reply === undefined) return
  const floor = version === undefined ? 0 : Number(version.value)
  reads.read(reading, reply.value, reply.by, { floor, wasUnderWay: wasUnderWay() })
}

async function call(caller: Caller, words: [string, ...string[]], kind: 'read' | 'write', key: string): Promise<void> {
  const { reads, client } = caller
  const wasUnderWay = underWay(caller, key)
  const begun = reads.begin(client, key, kind === 'write')
  const reply = await told(caller, words)
  if (reply === undefined) return
  if (kind === 'write') reads.wrote(begun, reply.value, wasUnderWay())
  else reads.read(begun, reply.value, reply.by, { wasUnderWay: wasUnderWay() })
}

/** Whether a key became hot between now, when a call of it begins, and when this is asked. */
function underWay({ hotOf }: Caller, key: string): () => boolean {
  const before = hotOf(key)
  return () => {
    const now = hotOf(key)
    return now !== undefined && now !== before
  }
}

/** Sends a command and reports the outcome to the oracle; undefined if it failed. */
async function told(caller: Caller, words: [string, ...string[]]): Promise<Awaited<ReturnType<Send>> | undefined> {
  const { process, calls, path, send, onAccess } = caller
  const begunAtMs = process.world.elapsedMs
  const what = words.slice(0, 2).join(' ')
  onAccess(words[1]!)
  let reply: Awaited<ReturnType<Send>>
  try {
    reply = await send(...words)
  } catch (error) {
    if (!isLimited(error, words[1]!)) calls.ended(path, what, begunAtMs, error as Error)
    return undefined
  }
  calls.ended(path, what, begunAtMs)
  return reply
}

/** Refused by a limit: that is what the rule demands, and only for its keys. */
function isLimited(error: unknown, key: string): boolean {
  if (!key.startsWith('limit:') || !(error instanceof Error)) return false
  return (error as { code?: string }).code === 'FB_KEY_LIMITED' || /limit/i.test(error.message)
}

/** A plain client to an address, as a caller's `send`. */
export function plainSend(redis: SimulatedRedis): Send {
  return async (...words) => ({ value: await redis.send(words), by: 'the proxy' })
}
