import { Chance, redisCli, waitFor } from '@firebreak/testkit'
import { Application, type Violation } from './application.ts'
import { FaultWindows } from './fault-windows.ts'
import { type ChaosFault, faultsOf } from './faults.ts'
import { Operator } from './operator.ts'
import { copyNames, Stage } from './stage.ts'
import { bareClient, openWays } from './ways.ts'

export interface ChaosOptions {
  readonly seed: number
  readonly forMs: number
  /** Called with every fault as it begins. */
  readonly onFault?: (atMs: number, name: string, forMs: number) => void
}

export interface ChaosResult {
  readonly faults: number
  /** How often each kind happened. */
  readonly kinds: Readonly<Record<string, number>>
  readonly calls: number
  readonly failedCalls: number
  /** How long hubs and sensors took to agree after the last fault. */
  readonly agreedMs: number
  readonly violations: readonly Violation[]
}

/** "Hubs and sensors agree within 5 s after the last fault". */
const agreeMs = 5000
/** A copy's life, and the time until a sensor learns that its key is no longer hot. */
const copiesGoneMs = 15_000
/** "its owner a minute later": marks that the process could not remove expire on their own. */
const ownersGoneMs = 67_500

/**
 * Breaks real processes, servers and sockets for a while, by a seed, under an application that knows what it may see. The
 * same seed gives the same faults in the same order; what happens in between is as it is on a real machine.
 */
export async function runChaos({ seed, forMs, onFault }: ChaosOptions): Promise<ChaosResult> {
  const chance = new Chance(seed)
  const stage = await Stage.start()
  const windows = new FaultWindows()
  const writer = bareClient(stage)
  const ways = await openWays(stage)
  const application = new Application(ways, writer, windows)
  const operator = new Operator(stage.hubUrls, ways, application)
  const kinds: Record<string, number> = {}
  const startedAt = performance.now()
  const elapsedMs = () => performance.now() - startedAt
  const faults = faultsOf(stage, chance.fork('strength'))
  const watch = setInterval(() => operator.watchSwitch(), 20)

  /** Plays one fault after the other, each for a while. */
  const play = async (list: readonly ChaosFault[], name: string) => {
    const own = chance.fork(name)
    while (elapsedMs() < forMs) {
      const [fault, pauseMs, lastsMs] = [own.pick(list), own.between(300, 2000), own.between(300, 4000)]
      await sleep(pauseMs)
      onFault?.(elapsedMs(), fault.name, lastsMs)
      kinds[fault.name] = (kinds[fault.name] ?? 0) + 1
      const over = windows.begin(fault)
      await fault.begin()
      await sleep(lastsMs)
      await fault.end()
      over()
    }
  }
  const operate = async () => {
    const own = chance.fork('operator')
    while (elapsedMs() < forMs) {
      await sleep(own.between(500, 3000))
      await operator.act(own)
    }
  }

  try {
    application.start()
    await waitFor(() => ways.every((way) => way.isConnected()))
    await Promise.all([play(faults.data, 'data'), play(faults.control, 'control'), operate()])
    const agreedMs = await agree(stage, operator, application)
    await checkCopies(stage, operator, application)
    await application.stop()
    const { calls, failedCalls, violations } = application
    const count = Object.values(kinds).reduce((sum, times) => sum + times, 0)
    return { faults: count, kinds, calls, failedCalls, agreedMs, violations }
  } finally {
    clearInterval(watch)
    windows.close()
    await application.stop()
    for (const way of ways) way.close()
    writer.disconnect()
    await stage.stop()
  }

  /** Checks that hubs and sensors agree on rules, switch and table, and have what was last confirmed. */
  async function agree(onStage: Stage, who: Operator, app: Application): Promise<number> {
    const since = performance.now()
    let last = ''
    const isAgreed = async () => {
      const [one, two] = await Promise.all(onStage.hubUrls.map((url) => who.picture(url)))
      last = JSON.stringify([one, two, ways.map((way) => [way.name, way.isConnected(), way.isOff()])])
      if (one === undefined || two === undefined) return false
      const isSame = one.rules === two.rules && one.isOff === two.isOff && one.hotKeys === two.hotKeys
      const isAsTold = who.expectedOff === undefined || one.isOff === who.expectedOff
      const { expectedThreshold } = who
      const isRule = expectedThreshold === undefined || one.rules.includes(`"enter":${expectedThreshold}`)
      const areSensors = ways.every((way) => way.isConnected() && (way.isOff() ?? one.isOff) === one.isOff)
      return isSame && isAsTold && isRule && areSensors
    }
    try {
      await waitFor(isAgreed, { timeoutMs: 30_000, everyMs: 50 })
    } catch {
      const expected = `switch ${who.expectedOff}, threshold ${who.expectedThreshold}`
      app.note('hubs and sensors agree', `not after 30 s: ${last}; confirmed were ${expected}`)
    }
    const tookMs = performance.now() - since
    const allowedMs = agreeMs + 4 * windows.slowMs
    if (tookMs > allowedMs) app.note('hubs and sensors agree', `only after ${Math.round(tookMs)} ms`)
    return Math.round(tookMs)
  }

  async function checkCopies(onStage: Stage, who: Operator, app: Application): Promise<void> {
    const [url] = onStage.hubUrls as [string]
    await waitFor(() => who.throwSwitch(url, false))
    await waitFor(() => who.deleteRules(url))
    const { port } = onStage.data.server
    const since = performance.now()
    const left = async (): Promise<string[]> => {
      const lives = await Promise.all(
        (await copyNames(port)).map(async (name) => [name, Number(await redisCli(port, 'PTTL', name))] as const),
      )
      // An owner's mark that nobody has touched since has at most the rest of its life left, and does expire; -2 means it is gone.
      const restMs = ownersGoneMs - (performance.now() - since)
      const isTooMuch = ([name, ms]: readonly [string, number]) =>
        name.endsWith(':firebreak-owner') ? ms === -1 || ms > restMs : ms !== -2
      return lives.filter(isTooMuch).map(([name, ms]) => `${name} ${ms} ms`)
    }
    const gone = async () => (await left()).length === 0
    await waitFor(gone, { timeoutMs: copiesGoneMs, everyMs: 200 }).catch(async () => {
      const names = await left()
      const some = names.slice(0, 5).join(', ')
      app.note('copies are gone', `${names.length} are left ${copiesGoneMs / 1000} s after their rule: ${some}`)
    })
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
