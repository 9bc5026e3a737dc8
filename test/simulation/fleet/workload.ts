import type { HotKey } from '@firebreak/shield'
import type { SimulatedProcess, SimulatedRedis } from '@firebreak/testkit'
import type { CallOracle } from '../oracles/call-oracle.ts'
import type { ReadOracle } from '../oracles/read-oracle.ts'
import { kindOf, passing, passingMs, versioned } from './keys.ts'

/** Sends one command; tells where the reply is from. */
export type Send = (...words: [string, ...string[]]) => Promise<{ readonly value: unknown; readonly by: string }>

/** A caller: who it is, what lies between it and Redis, and whom its calls are told to. */
export interface Caller {
  readonly process: SimulatedProcess
  /** A client's own name: each life is another client. */
  readonly client: string
  readonly path: readonly string[]
  readonly send: Send
  /** As a pipeline's command; by default as any other. */
  readonly sendPiped?: Send
  readonly reads: ReadOracle
  readonly calls: CallOracle
  /** Which keys are in demand. */
  readonly focus: () => readonly string[]
  readonly isOver: () => boolean
  /** How many of the usual writes are made now. */
  readonly writeShare: () => number
  /** The key as it is hot now; undefined where it is not, or nobody has asked for it yet. */
  readonly hotOf: (key: string) => HotKey | undefined
  /** One access of a key goes out. */
  readonly onAccess: (key: string) => void
}

const loops = 2
/** How often a read is part of a pipeline. */
const pipedProbability = 0.15
/** Now and then one process has a key all to itself, so that it alone makes it hot. */
const greed = { everyMs: [1500, 6000], forMs: [700, 2500], pauseMs: [4, 20] } as const
/** Reads that a caller has under way at most without waiting for them. */
const maxReading = 30

/** Between two writes of a program without Firebreak. */
const plainPauseMs = [60, 400] as const

/** Writes now and then, as a job that nobody protected: its changes are heard of by the guards alone. */
export function startPlainWriting(caller: Caller): void {
  const { process, writeShare } = caller
  process.start(async () => {
    while (!caller.isOver()) {
      const key = process.chance.pick(caller.focus())
      if (!key.startsWith('ttl:')) await call(caller, kindOf(key).write(key), 'write', key)
      // Not slowed down by as much as others write less: nobody else may write at all then.
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

/** Reads one key so often that it is hot by this caller's accesses alone. */
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

/** Reads what is in demand, also while earlier reads hang: what memory has is answered all the same. */
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
  // Seldom enough for the value to end while it is in demand.
  if (process.chance.happens(0.008)) {
    const value = process.runtime.newId()
    const reply = await told(caller, ['SET', key, value, 'PX', String(passingMs)])
    if (reply !== undefined) reads.setPassing(value)
    return
  }
  const reply = await told(caller, ['GET', key])
  if (reply !== undefined) reads.readPassing(client, key, reply.value, begunAtMs, reply.by)
}

/** Two commands in one turn, the first not waited for. */
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

/** Whether a key has become hot between now, when a call of it begins, and when it is asked. */
function underWay({ hotOf }: Caller, key: string): () => boolean {
  const before = hotOf(key)
  return () => {
    const now = hotOf(key)
    return now !== undefined && now !== before
  }
}

/** Sends a command and tells the oracle what became of it; undefined where it failed. */
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

/** Refused by a limit: it is what the rule asks for, and for its keys only. */
function isLimited(error: unknown, key: string): boolean {
  if (!key.startsWith('limit:') || !(error instanceof Error)) return false
  return (error as { code?: string }).code === 'FB_KEY_LIMITED' || /limit/i.test(error.message)
}

/** A plain client to an address, as a caller's `send`. */
export function plainSend(redis: SimulatedRedis): Send {
  return async (...words) => ({ value: await redis.send(words), by: 'the proxy' })
}
