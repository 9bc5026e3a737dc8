import type { DryRunView } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { useEffect, useState } from 'preact/hooks'
import { call } from '../data/api.ts'
import { overview } from '../data/live.ts'
import { count, duration, rate, timeOfDay } from '../format/format.ts'
import { attempt } from '../shell/notices.tsx'
import { t } from '../text/text.ts'
import { actionText, isRange } from './key-facts.ts'
import { RuleFromKey } from './rule-from-key.tsx'

interface KeyActionsProps {
  readonly redisClusterId: string
  /** Key text, as addresses carry it. */
  readonly text: string
  readonly name: string
  readonly ratePerSecond: number
  /** The rule that applies to this key alone. */
  readonly inForce: Rule | undefined
  readonly onChange: () => void
}

const kinds = ['limit', 'cache', 'copy', 'prewarm', 'ignore'] as const
type Kind = (typeof kinds)[number]

const titles = { limit: 'Limit', cache: 'Cache', copy: 'Copy', prewarm: 'Pre-warm', ignore: 'Ignore' } as const
const ends = [600_000, 3_600_000, 86_400_000] as const

/** What a person may do about one key: each is previewed, has an end, and is undone here. */
export function KeyActions(props: KeyActionsProps) {
  const { redisClusterId, text, name, ratePerSecond, inForce, onChange } = props
  const [kind, setKind] = useState<Kind>()
  const path = `/v1/keys/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(text)}/action`
  const undo = async () => {
    await call('DELETE', path)
    onChange()
  }
  return (
    <section aria-label={t('Actions')} class="key-actions">
      <div class="card-head">
        <h2>{t('Act on this key')}</h2>
        <RuleFromKey redisClusterId={redisClusterId} text={text} ratePerSecond={ratePerSecond} />
      </div>
      {inForce !== undefined && (
        <p class="in-force">
          <b>{actionText(inForce)}</b>{' '}
          {inForce.until !== undefined && (
            <span>
              {t('until {time}, {left} left', {
                time: timeOfDay(inForce.until),
                left: duration(inForce.until - (overview.value?.hubTime ?? Date.now())),
              })}
            </span>
          )}
          <button type="button" onClick={() => void attempt(t('Undone.'), undo)}>
            {t('Undo')}
          </button>
        </p>
      )}
      <fieldset class="choices" aria-label={t('Actions')}>
        {kinds.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={kind === one}
            disabled={one === 'prewarm' && isRange(name)}
            title={one === 'prewarm' && isRange(name) ? t('its name reads as a range of keys') : undefined}
            onClick={() => setKind(kind === one ? undefined : one)}
          >
            {t(titles[one])}
          </button>
        ))}
      </fieldset>
      {kind !== undefined && (
        <Preview
          key={kind}
          kind={kind}
          redisClusterId={redisClusterId}
          name={name}
          ratePerSecond={ratePerSecond}
          onAct={async (done, action, canUndo) => {
            const isDone = await attempt(done, action, canUndo ? undo : undefined)
            if (isDone) setKind(undefined)
            onChange()
          }}
          path={path}
        />
      )}
    </section>
  )
}

interface PreviewProps {
  readonly kind: Kind
  readonly redisClusterId: string
  readonly name: string
  readonly ratePerSecond: number
  readonly path: string
  readonly onAct: (done: string, action: () => Promise<unknown>, canUndo: boolean) => Promise<void>
}

function Preview({ kind, redisClusterId, name, ratePerSecond, path, onAct }: PreviewProps) {
  const [forMs, setForMs] = useState<number>(ends[0])
  const [limit, setLimit] = useState(() => Math.max(1, Math.round(ratePerSecond / 2)))
  const [copies, setCopies] = useState(4)
  const until = timeOfDay((overview.value?.hubTime ?? Date.now()) + forMs)
  const parameters = { ...(kind === 'limit' && { limit }), ...(kind === 'copy' && { copies }) }
  const act = () =>
    kind === 'prewarm'
      ? onAct(
          t('Pre-warmed until {until}; it ends by itself.', { until }),
          () => call('POST', '/v1/prewarm', { redisClusterId, keys: [name], forMs }),
          false,
        )
      : onAct(doneText(kind, forMs, limit), () => call('PUT', path, { action: kind, ...parameters, forMs }), true)
  return (
    <div class="preview">
      <div class="fields">
        {kind === 'limit' && (
          <NumberField label={t('Accesses a second')} name="limit" value={limit} onChange={setLimit} />
        )}
        {kind === 'copy' && <NumberField label={t('Copies')} name="copies" value={copies} onChange={setCopies} />}
        <label>
          {t('For')}
          <select name="forMs" value={forMs} onChange={(event) => setForMs(Number(event.currentTarget.value))}>
            {ends.map((end) => (
              <option key={end} value={end}>
                {duration(end)}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class={kind === 'ignore' ? 'danger' : 'primary'} onClick={() => void act()}>
          {t('{action} for {time}', { action: t(titles[kind]), time: duration(forMs) })}
        </button>
      </div>
      <p class="preview-text">{previewText(kind, { limit, copies, ratePerSecond, until })}</p>
      {kind === 'prewarm' ? (
        <PrewarmPlan redisClusterId={redisClusterId} name={name} forMs={forMs} />
      ) : (
        kind !== 'ignore' && (
          <DryRun redisClusterId={redisClusterId} name={name} kind={kind} limit={limit} copies={copies} />
        )
      )}
    </div>
  )
}

function doneText(kind: Exclude<Kind, 'prewarm'>, forMs: number, limit: number): string {
  const time = duration(forMs)
  switch (kind) {
    case 'limit':
      return t('Limited to {rate} for {time}.', { rate: rate(limit), time })
    case 'cache':
      return t('Cached for {time}.', { time })
    case 'copy':
      return t('Copied for {time}.', { time })
    case 'ignore':
      return t('Ignored for {time}.', { time })
  }
}

interface PreviewFacts {
  readonly limit: number
  readonly copies: number
  readonly ratePerSecond: number
  readonly until: string
}

function previewText(kind: Kind, { limit, copies, ratePerSecond, until }: PreviewFacts): string {
  const refused = Math.max(0, ratePerSecond - limit)
  switch (kind) {
    case 'limit':
      return refused > 0
        ? t('Of {rate} now, about {refused} would be refused, until {until}.', {
            rate: rate(ratePerSecond),
            refused: rate(refused),
            until,
          })
        : t('The key is used {rate} now: nothing would be refused, until {until}.', {
            rate: rate(ratePerSecond),
            until,
          })
    case 'cache':
      return t(
        'Every process answers reads from its own memory, until {until}. Values are dropped when the key changes.',
        { until },
      )
    case 'copy':
      return t(
        'Reads are spread over {n} copies on different nodes, until {until}. The copies are removed afterwards.',
        { n: copies, until },
      )
    case 'prewarm':
      return t('The key counts as hot from now until {until}, also without a read.', { until })
    case 'ignore':
      return t('The key is never hot until {until}, whatever its rules say: all its reads reach Redis.', { until })
  }
}

interface DryRunProps {
  readonly redisClusterId: string
  readonly name: string
  readonly kind: Kind
  readonly limit: number
  readonly copies: number
}

/** What the same would have done in what was recorded. */
function DryRun({ redisClusterId, name, kind, limit, copies }: DryRunProps) {
  const [text, setText] = useState<string>()
  useEffect(() => {
    const strategy = {
      limit: { strategy: 'RateLimit', limit },
      copy: { strategy: 'RedundantKeys', copyCount: copies },
      cache: 'LocalCache',
    }[kind as 'limit' | 'copy' | 'cache']
    let isWanted = true
    const timer = setTimeout(async () => {
      try {
        const body = { id: 'preview', redisClusterId, keys: [name], threshold: 1, strategy }
        const run = await call<DryRunView>('POST', '/v1/rules/preview/dry-run', body)
        if (isWanted) setText(dryRunText(run))
      } catch (error) {
        if (isWanted) setText((error as Error).message)
      }
    }, 250)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [redisClusterId, name, kind, limit, copies])
  return <p class="preview-text muted">{text ?? '…'}</p>
}

function dryRunText({ seconds, savedReads, readShare }: DryRunView): string {
  const values = { time: duration(seconds * 1000), share: `${Math.round(readShare * 100)} %` }
  return savedReads === undefined
    ? t('In the last {time}, {share} of all reads fell on this key.', values)
    : t('In the last {time} it would have saved Redis {n} reads: {share} of all reads fell on this key.', {
        ...values,
        n: count(savedReads),
      })
}

interface Plan {
  readonly plan: { readonly steps: readonly { readonly ruleId: string; readonly strategies: readonly string[] }[] }
}

function PrewarmPlan(props: { readonly redisClusterId: string; readonly name: string; readonly forMs: number }) {
  const { redisClusterId, name, forMs } = props
  const [text, setText] = useState<string>()
  useEffect(() => {
    let isWanted = true
    call<Plan>('POST', '/v1/prewarm', { redisClusterId, keys: [name], forMs, dryRun: true }).then(
      ({ plan }) => isWanted && setText(plan.steps.map(planText).join(' ')),
      (error: Error) => isWanted && setText(error.message),
    )
    return () => {
      isWanted = false
    }
  }, [redisClusterId, name, forMs])
  return <p class="preview-text muted">{text ?? '…'}</p>
}

function planText({ ruleId, strategies }: Plan['plan']['steps'][number]): string {
  return t('Rule {rule} does {strategies}.', { rule: ruleId, strategies: strategies.join(', ') })
}

interface NumberFieldProps {
  readonly label: string
  readonly name: string
  readonly value: number
  readonly onChange: (value: number) => void
}

function NumberField({ label, name, value, onChange }: NumberFieldProps) {
  return (
    <label>
      {label}
      <input
        name={name}
        type="number"
        min="1"
        value={value}
        onInput={(event) => onChange(Number(event.currentTarget.value))}
      />
    </label>
  )
}
