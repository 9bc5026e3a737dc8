import type { Clock } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import {
  defineScript,
  loadScript,
  type Redis,
  type RedisArgument,
  type RedisReply,
  type RedisScript,
} from '@firebreak/redis'
import { headOf, readLine } from '../store/change-line.ts'
import type {
  BoardDecision,
  BoardNews,
  BoardState,
  BoardSync,
  BoardTable,
  BoardTotals,
  HeatBoard,
  HeatPost,
  PostAnswer,
  PostSettings,
} from './heat-board.ts'

const load = (name: string) => loadScript(new URL(`./lua/${name}.lua`, import.meta.url))
const time = load('time')
const script = (name: string) => defineScript(name, time.source + load(name).source)
const postScript = script('post')
const pollScript = script('poll')
const loadTableScript = script('load')
const syncScript = script('sync')

/**
 * Enough to cover all nodes of a usual cluster; each hub queries each of them 20 times per second. All hubs must agree.
 */
const defaultBucketCount = 12
const defaultMaxOutbox = 10_000
const maxDecisions = 500
const maxTimers = 200
/** A timer whose hub does nothing passes to another hub after this. */
const timerLeaseMs = 1000
/** A hub that has been silent for this long counts as gone. */
const hubTimeoutMs = 3000

type SyncAnswer = [time: number, epoch: string, version: number, isOff: number, head: string, ...hubs: string[]]

export interface RedisHeatBoardOptions {
  readonly prefix: string
  readonly stateKey: string
  readonly hubsKey: string
  /** Only for replays in tests: the time passed to scripts. Production always uses Redis' own. @internal */
  readonly testClock?: Clock
  /** Only for simulations, where each queried bucket costs time. @internal @default 12 */
  readonly bucketCount?: number
  /** Roughly how many decisions an outbox keeps; a hub that missed more loads the table. @internal @default 10,000 */
  readonly maxOutbox?: number
}

interface BucketKeys {
  readonly hot: string
  readonly timers: string
  readonly outbox: string
  readonly sequence: string
  heat(id: string): string
}

type Six = [number, number, number, number, number, number]

/** The scripts' spelling: `until` is a keyword in Lua. */
type RawState = Omit<BoardState, 'until' | 'services'> & { until_: number; services: unknown }

/** The board on Redis: all keys of a bucket have one hash tag, so that one script may touch them, on a cluster too. */
export class RedisHeatBoard implements HeatBoard {
  readonly bucketCount: number
  readonly #redis: Redis
  readonly #options: RedisHeatBoardOptions
  readonly #buckets: readonly BucketKeys[]

  constructor(redis: Redis, options: RedisHeatBoardOptions) {
    this.#redis = redis
    this.#options = options
    this.bucketCount = options.bucketCount ?? defaultBucketCount
    this.#buckets = Array.from({ length: this.bucketCount }, (_, index) => {
      const key = (name: string) => `{${options.prefix}:heat:${index}}:${name}`
      return {
        hot: key('hot'),
        timers: key('timers'),
        outbox: key('outbox'),
        sequence: key('sequence'),
        heat: (id: string) => key(`key:${id}`),
      }
    })
  }

  bucketOf(id: string): number {
    return keySlot(id.replaceAll(/[{}]/g, '')) % this.bucketCount
  }

  async sync(hubId: string, totals: BoardTotals): Promise<BoardSync> {
    const { hubsKey, stateKey } = this.#options
    const answer = await this.#run(syncScript, [hubsKey, stateKey], [hubId, JSON.stringify(totals), hubTimeoutMs])
    const [boardTime, epoch, rulesVersion, isOff, head, ...hubs] = answer as SyncAnswer
    const otherHubs = new Map<string, BoardTotals>()
    for (let index = 0; index < hubs.length; index += 2) {
      otherHubs.set(hubs[index]!, JSON.parse(hubs[index + 1]!) as BoardTotals)
    }
    const line = readLine(head, rulesVersion, isOff === 1)
    return { boardTime, epoch, rulesVersion, isOff: isOff === 1, newestChange: headOf(line), otherHubs }
  }

  async post(bucket: number, settings: PostSettings, posts: readonly HeatPost[]): Promise<PostAnswer> {
    const { hot, timers, outbox, sequence, heat } = this.#buckets[bucket]!
    const keys = [hot, timers, outbox, sequence, ...posts.map(({ id }) => heat(id))]
    const { maxOutbox = defaultMaxOutbox } = this.#options
    const args = [JSON.stringify({ ...settings, maxOutbox }), ...posts.map((post) => JSON.stringify(post))]
    const answer = await this.#run(postScript, keys, args)
    const [boardTime, decisionCount, ...heats] = answer as [number, number, ...string[][]]
    return {
      boardTime,
      decisionCount,
      heats: heats.map((texts) => {
        const [accesses, writes, bytes, reads, helped, errors] = texts.map(Number) as Six
        return { accesses, writes, bytes, othersEffect: { reads, helped, errors } }
      }),
    }
  }

  async poll(bucket: number, after: string): Promise<BoardNews> {
    const { timers, outbox } = this.#buckets[bucket]!
    const args = [after, maxDecisions, maxTimers, timerLeaseMs]
    const answer = await this.#run(pollScript, [timers, outbox], args)
    const [boardTime, due, entries] = answer as [number, string[], [string, string, string][]]
    return {
      boardTime,
      due,
      decisions: entries.map(([, , text]) => toDecision(text)),
      sequences: entries.map(([, sequence]) => Number(sequence)),
      last: entries.at(-1)?.[0] ?? after,
    }
  }

  async load(bucket: number): Promise<BoardTable> {
    const { hot, outbox, sequence } = this.#buckets[bucket]!
    const answer = await this.#run(loadTableScript, [hot, outbox, sequence], [])
    const [boardTime, last, newest, ...pairs] = answer as [number, string, number, ...string[]]
    const states = new Map<string, BoardState>()
    for (let index = 0; index < pairs.length; index += 2) {
      states.set(pairs[index]!, toState(JSON.parse(pairs[index + 1]!) as RawState))
    }
    return { boardTime, last, sequence: newest, states }
  }

  #run(of: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<RedisReply> {
    const { testClock } = this.#options
    return this.#redis.run(of, keys, [testClock === undefined ? '' : Math.floor(testClock.now()), ...args])
  }
}

function toDecision(text: string): BoardDecision {
  const raw = JSON.parse(text) as Omit<BoardDecision, 'state'> & { state: RawState }
  return { ...raw, state: toState(raw.state) }
}

function toState({ until_, services, ...rest }: RawState): BoardState {
  // Lua cannot distinguish an empty list from an empty object.
  return { ...rest, until: until_, services: Array.isArray(services) ? (services as string[]) : [] }
}
