import { once } from 'node:events'
import { type GuardedChild, startSource } from '@firebreak/testkit'
import { say } from '../harness/bench.ts'
import type { Stay } from './contend.ts'
import { type ContestantName, openContestants, type Take } from './contestants.ts'

export const waiters = 20
const processCount = 4

/** What the processes are told beside the contestant and the name (see `contender.ts`). */
export interface FourOptions {
  readonly returningMs?: number
}

/** The contestants in this process, and in four of its children, all on one Redis. */
export class Table {
  readonly take: Readonly<Record<ContestantName, Take>>
  readonly port: number
  readonly #close: () => Promise<void>
  #children: Promise<GuardedChild[]> | undefined
  #names = 0

  constructor(port: number) {
    const { take, close } = openContestants(port)
    this.port = port
    this.take = take
    this.#close = close
  }

  newName(contestant: ContestantName): string {
    return `${contestant}-${++this.#names}`
  }

  /** The four processes contend for a lock, with a quarter of the waiters each. */
  async runInFour(contestant: ContestantName, name: string, options: FourOptions = {}): Promise<Stay[]> {
    this.#children ??= startChildren(this.port)
    const children = await this.#children
    const answers = children.map(({ process }) => once(process, 'message') as Promise<[Stay[]]>)
    for (const { process } of children) process.send({ contestant, name, waiters: waiters / processCount, ...options })
    return (await Promise.all(answers)).flatMap(([stays]) => stays)
  }

  async close(): Promise<void> {
    for (const child of (await this.#children) ?? []) child.process.disconnect()
    await this.#close()
  }
}

async function startChildren(port: number): Promise<GuardedChild[]> {
  say('four processes start')
  const children = Array.from({ length: processCount }, () =>
    startSource(new URL('./contender.ts', import.meta.url), [String(port)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    }),
  )
  await Promise.all(children.map(({ process }) => once(process, 'message')))
  return children
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Rivals of a hand-off, for the reports. */
export const semaphoreHandoff = "redis-semaphore's mean hand-off"
