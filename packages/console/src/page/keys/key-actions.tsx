import type { Rule } from '@firebreak/core/rules'
import { useState } from 'preact/hooks'
import { call } from '../data/api.ts'
import { timeOfDay } from '../format/format.ts'
import { actionText, isRange } from './key-facts.ts'

interface KeyActionsProps {
  readonly redisClusterId: string
  /** Key text, as addresses carry it. */
  readonly text: string
  readonly name: string
  readonly ratePerSecond: number
  /** What is in force for this key alone. */
  readonly inForce: Rule | undefined
  readonly onChange: () => void
}

const ends = [
  { text: '10 minutes', forMs: 600_000 },
  { text: '1 hour', forMs: 3_600_000 },
  { text: '1 day', forMs: 86_400_000 },
] as const

/** What a person may do about one key: each has an end, and is undone here. */
export function KeyActions({ redisClusterId, text, name, ratePerSecond, inForce, onChange }: KeyActionsProps) {
  const [forMs, setForMs] = useState<number>(ends[0].forMs)
  const [limit, setLimit] = useState(String(Math.max(1, Math.round(ratePerSecond / 2))))
  const [told, setTold] = useState<{ readonly text: string; readonly isProblem: boolean }>()
  const path = `/v1/keys/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(text)}/action`
  const act = async (done: string, action: () => Promise<unknown>) => {
    try {
      await action()
      setTold({ text: done, isProblem: false })
      onChange()
    } catch (error) {
      setTold({ text: (error as Error).message, isProblem: true })
    }
  }
  const put = (done: string, body: object) => act(done, () => call('PUT', path, { ...body, forMs }))
  return (
    <section aria-label="Actions">
      <h2>Act</h2>
      {inForce !== undefined && (
        <p class="in-force">
          <b>{actionText(inForce)}</b>
          {inForce.until !== undefined && ` until ${timeOfDay(inForce.until)}`} by rule <code>{inForce.id}</code>.{' '}
          <button type="button" onClick={() => act('Undone.', () => call('DELETE', path))}>
            Undo
          </button>
        </p>
      )}
      <div class="actions">
        <label>
          For
          <select name="forMs" value={forMs} onChange={(event) => setForMs(Number(event.currentTarget.value))}>
            {ends.map((end) => (
              <option key={end.forMs} value={end.forMs}>
                {end.text}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => put('Cached.', { action: 'cache' })}>
          Cache
        </button>
        <label>
          Accesses a second
          <input
            name="limit"
            type="number"
            min="1"
            value={limit}
            onInput={(event) => setLimit(event.currentTarget.value)}
          />
        </label>
        <button type="button" onClick={() => put('Limited.', { action: 'limit', limit: Number(limit) })}>
          Limit
        </button>
        <button
          type="button"
          disabled={isRange(name)}
          title={isRange(name) ? 'its name reads as a range of keys' : 'ends by itself; cannot be undone before'}
          onClick={() => act('Pre-warmed: it ends by itself.', () => prewarm({ redisClusterId, keys: [name], forMs }))}
        >
          Pre-warm
        </button>
        <button type="button" onClick={() => put('Ignored.', { action: 'ignore' })}>
          Ignore
        </button>
      </div>
      {told !== undefined && (
        <p class={told.isProblem ? 'problem' : 'done'} role="status">
          {told.text}
        </p>
      )}
    </section>
  )
}

/** A key that no rule in force matches is not pre-warmed, which the API tells as a result and not as an error. */
async function prewarm(job: { redisClusterId: string; keys: string[]; forMs: number }): Promise<void> {
  const { result } = await call<{ result?: { unmatched: string[] } }>('POST', '/v1/prewarm', job)
  if (result?.unmatched.length === 1) throw new Error('No rule that is on matches this key: add one, or cache it.')
}
