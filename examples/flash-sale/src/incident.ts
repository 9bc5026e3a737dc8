// `npm run demo -- --incident`: a night's incident to practise on, from the alarm to the key that is limited.
import { protect, unprotect } from '@firebreak/client'
import { type AlarmView, keyText, type RulesView } from '@firebreak/core'
import { Redis } from 'ioredis'

export interface IncidentOptions {
  readonly hubUrl: string
  readonly redisUrl: string
  /** How long it lasts where nobody does anything. @default 300 */
  readonly seconds?: number
  /** Reads of the hot key a second. @default 3000 */
  readonly readsPerSecond?: number
  /** Gets a line of the story. @default stdout */
  readonly say?: (line: string) => void
  readonly signal?: AbortSignal
}

/** What became of it; seconds since the start, undefined where it did not happen. */
export interface IncidentStory {
  readonly alarmAfter: number | undefined
  readonly actedAfter: number | undefined
  readonly undoneAfter: number | undefined
  /** Reads that the limit refused. */
  readonly refused: number
}

const cluster = 'shop'
export const hotKey = 'coupon:black-friday'
/** A colleague wanted to watch coupons for a while: nothing is done about them, whatever their heat. */
const rule = { id: 'demo-incident', prefix: 'coupon:', threshold: 200, priority: 1000, strategy: 'Observe' }
const tickMs = 20
const quietMs = 3000

/** Plays it: a coupon goes viral under a rule that only observes. Ends when somebody acted and undid it, or with its time. */
export async function playIncident(options: IncidentOptions): Promise<IncidentStory> {
  const { hubUrl, redisUrl, seconds = 300, readsPerSecond = 3000, signal } = options
  const say = options.say ?? ((line) => void process.stdout.write(`${line}\n`))
  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const init =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const answer = await fetch(`${hubUrl}${path}`, { method, ...init })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (answer.status === 204 ? undefined : await answer.json()) as T
  }
  const redis = protect(new Redis(redisUrl), { hubs: [hubUrl], serviceId: 'checkout', redisClusterId: cluster })
  await redis.set(hotKey, '{"percent":40}')
  await api('PUT', `/v1/rules/${rule.id}`, rule)
  const started = performance.now()
  const elapsed = () => Math.round((performance.now() - started) / 100) / 10
  let refused = 0
  let turn = 0
  const traffic = setInterval(() => {
    turn++
    const isQuiet = performance.now() - started < quietMs
    for (let read = 0; read < (isQuiet ? 1 : (readsPerSecond * tickMs) / 1000); read++)
      redis.get(hotKey).catch(() => refused++)
    for (let item = 0; item < 4; item++) redis.get(`product:${(turn + item) % 40}`).catch(() => {})
  }, tickMs)
  say(`0.0 s  a quiet night. Watch it: ${hubUrl}/#/overview`)
  const story: { alarmAfter?: number; actedAfter?: number; undoneAfter?: number } = {}
  const isActed = async () => {
    const { rules } = await api<RulesView>('GET', '/v1/rules')
    // The console's action, or the rule that the runbook has people write.
    const ours = rules.find(({ pattern, priority }) => {
      return pattern.kind === 'exact' && pattern.keys.includes(hotKey) && priority > rule.priority
    })
    return ours?.levels[0]?.strategies[0]?.strategy
  }
  try {
    while (elapsed() < seconds && signal?.aborted !== true && story.undoneAfter === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 250))
      if (story.alarmAfter === undefined) {
        const { alarms } = await api<{ alarms: AlarmView[] }>('GET', '/v1/alarms')
        const alarm = alarms.find(({ subject }) => subject?.key === keyText(hotKey))
        if (alarm === undefined) continue
        story.alarmAfter = elapsed()
        say(`${story.alarmAfter} s  ALARM: ${alarm.cause}`)
        say(`        Your turn, in four clicks at ${hubUrl}/#/overview`)
        say(`        1 Open ${hotKey}   2 Limit   3 Limit for 10 min   4 Undo, when it is over`)
        say('        or from the terminal, as docs/guides/runbook.md says under "A key is hot and not handled"')
        continue
      }
      const strategy = await isActed()
      if (strategy !== undefined && story.actedAfter === undefined) {
        story.actedAfter = elapsed()
        say(`${story.actedAfter} s  ${strategy} is in force for ${hotKey}`)
      } else if (strategy === undefined && story.actedAfter !== undefined) {
        story.undoneAfter = elapsed()
        say(`${story.undoneAfter} s  undone`)
      }
    }
  } finally {
    clearInterval(traffic)
    await api('DELETE', `/v1/rules/${rule.id}`).catch(() => {})
    unprotect(redis)
    redis.disconnect()
  }
  const { alarmAfter, actedAfter, undoneAfter } = story
  say(
    actedAfter === undefined
      ? 'Nobody did anything; the rule that only observes is gone again.'
      : `Over: ${refused.toLocaleString('en-US')} reads were refused meanwhile.`,
  )
  return { alarmAfter, actedAfter, undoneAfter, refused }
}
