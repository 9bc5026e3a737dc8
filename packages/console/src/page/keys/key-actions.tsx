import type { DryRunView } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { useEffect, useState } from 'preact/hooks'
import { call } from '../data/api.ts'
import { overview } from '../data/live.ts'
import { count, duration, percent, rate, timeOfDay } from '../format/format.ts'
import { replaceRule, ruleNow } from '../rules/replace-rule.ts'
import { useDryRun } from '../rules/use-dry-run.ts'
import { attempt } from '../shell/notices.tsx'
import { t } from '../text/text.ts'
import {
  type ActionKind,
  actionEffectText,
  type BeyondLimit,
  beyondLimit,
  inForceText,
  type KeyNow,
  lossText,
} from './action-effect.ts'
import { actionText, isRange } from './key-facts.ts'
import { RuleFromKey } from './rule-from-key.tsx'

interface KeyActionsProps {
  readonly redisClusterId: string
  /** Key text, as addresses carry it. */
  readonly text: string
  readonly name: string
  /** What is true of the key now. */
  readonly now: KeyNow
  /** The rule that applies to this key alone. */
  readonly inForce: Rule | undefined
  readonly onChange: () => void
}

const kinds = ['limit', 'cache', 'copy', 'prewarm', 'ignore'] as const satisfies readonly ActionKind[]
type Kind = ActionKind

const titles = { limit: 'Limit', cache: 'Cache', copy: 'Copy', prewarm: 'Pre-warm', ignore: 'Ignore' } as const
const beyondTitles = { reject: 'is refused', stale: 'gets the last known value', wait: 'waits' } as const
const ends = [600_000, 3_600_000, 86_400_000] as const

/** What a person may do about one key: each is previewed, has an end, and is undone here. */
export function KeyActions(props: KeyActionsProps) {
  const { redisClusterId, text, name, now, inForce, onChange } = props
  const { ratePerSecond } = now
  const [kind, setKind] = useState<Kind>()
  const path = `/v1/keys/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(text)}/action`
  const undo = async (rule: Rule) => {
    await replaceRule(rule.id, rule, undefined)
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
          <button type="button" onClick={() => void attempt(t('Undone.'), () => undo(inForce))}>
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
          now={now}
          inForce={inForce}
          onAct={async (done, action) => {
            const isDone = await attempt(done, action, async (takeBack) => {
              await takeBack()
              onChange()
            })
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
  readonly now: KeyNow
  readonly path: string
  readonly inForce: Rule | undefined
  /** The action gives the way back. */
  readonly onAct: (done: string, action: () => Promise<() => Promise<unknown>>) => Promise<void>
}

function Preview({ kind, redisClusterId, name, now, inForce, path, onAct }: PreviewProps) {
  const [forMs, setForMs] = useState<number>(ends[0])
  const [limit, setLimit] = useState(() => Math.max(1, Math.round(now.ratePerSecond / 2)))
  const [onLimit, setOnLimit] = useState<BeyondLimit>('reject')
  const [copies, setCopies] = useState(4)
  const until = timeOfDay((overview.value?.hubTime ?? Date.now()) + forMs)
  const parameters = { ...(kind === 'limit' && { limit, onLimit }), ...(kind === 'copy' && { copies }) }
  const action = { kind, limit, onLimit, copies }
  const loss = lossText(action, now)
  const act = () =>
    kind === 'prewarm'
      ? onAct(t('Pre-warmed until {until}; it ends by itself.', { until }), async () => {
          await call('POST', '/v1/prewarm', { redisClusterId, keys: [name], forMs })
          return () => call('DELETE', path.replace(/action$/, 'prewarm'))
        })
      : onAct(doneText(kind, forMs, limit), async () => {
          const { rule } = await call<{ rule: Rule }>('PUT', path, { action: kind, ...parameters, forMs })
          const done = await ruleNow(rule.id)
          // What was in force before comes back, unless it has ended meanwhile.
          return () => replaceRule(rule.id, done, isOver(inForce) ? undefined : inForce)
        })
  return (
    <div class="preview">
      <div class="fields">
        {kind === 'limit' && (
          <NumberField label={t('Accesses per second')} name="limit" value={limit} onChange={setLimit} />
        )}
        {kind === 'limit' && (
          <label>
            {t('Excess accesses')}
            <select
              name="onLimit"
              value={onLimit}
              onChange={(event) => setOnLimit(event.currentTarget.value as BeyondLimit)}
            >
              {beyondLimit.map((one) => (
                <option key={one} value={one}>
                  {t(beyondTitles[one])}
                </option>
              ))}
            </select>
          </label>
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
      {kind !== 'prewarm' && <p class="preview-text">{inForceText(now)}</p>}
      <p class="preview-text">{actionEffectText(action, now, until)}</p>
      {loss !== undefined && <p class="preview-text problem">{loss}</p>}
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

function isOver(rule: Rule | undefined): boolean {
  return rule?.until !== undefined && rule.until <= (overview.value?.hubTime ?? Date.now())
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

interface DryRunProps {
  readonly redisClusterId: string
  readonly name: string
  readonly kind: Kind
  readonly limit: number
  readonly copies: number
}

/** What the same would have done in what was recorded, with nothing else in force. */
function DryRun({ redisClusterId, name, kind, limit, copies }: DryRunProps) {
  const strategy = {
    limit: { strategy: 'RateLimit', limit },
    copy: { strategy: 'RedundantKeys', copyCount: copies },
    cache: 'LocalCache',
  }[kind as 'limit' | 'copy' | 'cache']
  const { run, refused } = useDryRun(JSON.stringify({ redisClusterId, keys: [name], threshold: 1, strategy }))
  return <p class="preview-text muted">{refused ?? (run === undefined ? '…' : dryRunText(run))}</p>
}

function dryRunText({ seconds, savedReads = 0, readShare, hot }: DryRunView): string {
  const values = { time: duration(seconds * 1000), share: percent(readShare) }
  const reads = hot?.reduce((sum, key) => sum + key.reads, 0) ?? 0
  return savedReads === 0
    ? t('In the last {time}, {n} reads fell on this key, {share} of all.', { ...values, n: count(reads) })
    : t('In the last {time} it alone would have kept {n} of {reads} reads of this key from Redis ({share} of all).', {
        ...values,
        n: count(savedReads),
        reads: count(reads),
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
