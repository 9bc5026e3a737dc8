import { keyText } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { count, duration } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { KeyName } from '../keys/key-link.tsx'
import { NumberField, TextField } from '../rules/fields.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface Job {
  readonly id: string
  readonly redisClusterId: string
  readonly keys: readonly string[]
  readonly services: readonly string[]
  readonly at: number
  readonly forMs: number
  readonly who: string
  readonly schedule?: string
}

interface Answer {
  readonly plan: {
    readonly redisClusterId: string
    readonly steps: readonly {
      readonly ruleId: string
      readonly strategies: readonly string[]
      readonly keys: readonly string[]
    }[]
  }
  readonly job?: { readonly id: string }
}

const shownKeys = 3
const minute = 60_000

/** Keys that are hot before their time: jobs to come, and a new one. */
export function Prewarming() {
  const { value, error, reload } = useLoaded<{ jobs: Job[] }>('/v1/prewarm', 3000)
  const cancel = async (job: Job) => {
    await attempt(t('Cancelled.'), () => call('DELETE', `/v1/prewarm/${encodeURIComponent(job.id)}`))
    reload()
  }
  return (
    <section aria-label={t('Pre-warming')}>
      <h2>{t('Pre-warming: keys that are hot before their time')}</h2>
      {canOperate.value && <NewJob onMade={reload} />}
      <RecordTable
        label={t('Pre-warming')}
        rows={value?.jobs}
        error={error}
        id={({ id }) => id}
        empty={t('Nothing is planned.')}
        columns={[
          { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
          { title: t('Keys'), cell: (job) => <Keys of={job} /> },
          { title: t('Cluster'), cell: ({ redisClusterId }) => redisClusterId },
          { title: t('Services'), cell: ({ services }) => services.join(', ') || t('all'), isMinor: true },
          { title: t('For'), cell: ({ forMs }) => duration(forMs), isNumber: true },
          { title: t('Again'), cell: ({ schedule }) => (schedule === undefined ? '–' : <code>{schedule}</code>) },
          { title: t('Person'), cell: ({ who }) => who, isMinor: true },
          {
            title: '',
            cell: (job) =>
              canOperate.value && (
                <button type="button" class="quiet" onClick={() => void cancel(job)}>
                  {t('Cancel')}
                </button>
              ),
            isTight: true,
          },
        ]}
      />
    </section>
  )
}

function Keys({ of: { keys } }: { readonly of: Job }) {
  return (
    <>
      {keys.slice(0, shownKeys).map((name) => (
        <span key={name} class="line">
          <KeyName text={keyText(name)} />
        </span>
      ))}
      {keys.length > shownKeys && <small>{t('and {n} more', { n: count(keys.length - shownKeys) })}</small>}
    </>
  )
}

/** A job is planned first: which rule would do what for which keys. It is made only as it was planned. */
function NewJob({ onMade }: { readonly onMade: () => void }) {
  const [keys, setKeys] = useState('')
  const [cluster, setCluster] = useState('')
  const [at, setAt] = useState('')
  const [cron, setCron] = useState('')
  const [minutes, setMinutes] = useState(30)
  const [planned, setPlanned] = useState<{ readonly body: string; readonly answer: Answer }>()
  const [problem, setProblem] = useState<string>()
  const body = {
    keys: keys.split('\n').filter((line) => line !== ''),
    forMs: Math.round(minutes * minute),
    ...(cluster !== '' && { redisClusterId: cluster }),
    ...(at !== '' && { at }),
    ...(cron !== '' && { cron, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone }),
  }
  const written = JSON.stringify(body)
  const isPlanned = planned?.body === written
  const plan = async () => {
    try {
      const answer = await call<Answer>('POST', '/v1/prewarm', { ...body, dryRun: true })
      setPlanned({ body: written, answer })
      setProblem(undefined)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  const make = async () => {
    let id = ''
    const isLater = at !== '' || cron !== ''
    const isDone = await attempt(
      isLater ? t('Planned.') : t('Pre-warmed.'),
      async () => {
        id = (await call<Answer>('POST', '/v1/prewarm', body)).job?.id ?? ''
      },
      isLater ? () => call('DELETE', `/v1/prewarm/${encodeURIComponent(id)}`).finally(onMade) : undefined,
    )
    if (isDone) setPlanned(undefined)
    onMade()
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    void (isPlanned ? make() : plan())
  }
  return (
    <form class="prewarm" onSubmit={submit}>
      <div class="fields">
        <TextField label={t('Keys or ranges, one per line')} name="keys" hasLines value={keys} onChange={setKeys} />
        <TextField label={t('Cluster')} name="cluster" isOptional value={cluster} onChange={setCluster} />
        <TextField label={t('At, as 19:58 (empty: now)')} name="at" isOptional value={at} onChange={setAt} />
        <TextField label={t('Or by cron, as 58 9 * * fri')} name="cron" isOptional value={cron} onChange={setCron} />
        <NumberField
          label={t('For minutes')}
          name="minutes"
          min={1}
          value={minutes}
          onChange={(next) => next !== undefined && setMinutes(next)}
        />
        <button type="submit" class={isPlanned ? 'primary' : undefined}>
          {isPlanned ? t('Pre-warm') : t('Show what it would do')}
        </button>
      </div>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {isPlanned && (
        <p class="preview-text">
          {planned.answer.plan.steps
            .map(({ ruleId, strategies, keys: of }) =>
              t('Rule {rule} does {strategies} for {n} keys.', {
                rule: ruleId,
                strategies: strategies.join(', '),
                n: count(of.length),
              }),
            )
            .join(' ')}
        </p>
      )}
    </form>
  )
}
