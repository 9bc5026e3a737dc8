import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { count } from '../format/format.ts'
import { Figure } from '../overview/verdict.tsx'
import { NumberField, TextField } from '../rules/fields.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface IdsStatus {
  readonly canAddTags?: boolean
  readonly given: number
  readonly snowflake?: { readonly state: string; readonly workerId: number } | null
}

interface SegmentBuffer {
  readonly tag: string
  readonly store: string
  readonly next: string
  readonly left: number
  readonly ready: number
  readonly step: number
  readonly isLoading: boolean
  readonly waiting: number
  readonly error?: string
}

interface Database {
  readonly name: string
  readonly isUp: boolean
  readonly error?: string
  readonly rows: readonly { readonly tag?: string; readonly maxId: string; readonly step: number }[]
}

/** What is left in the buffers of segment ids, their databases, and the snowflake worker with its clock. */
export function IdsPage() {
  const status = useLoaded<IdsStatus>('/api/ids/status')
  const buffers = useLoaded<SegmentBuffer[]>('/api/ids/buffers')
  const databases = useLoaded<Database[]>('/api/ids/databases')
  const snowflake = status.value?.snowflake
  return (
    <>
      <section aria-label={t('Ids')}>
        <h1>{t('Ids')}</h1>
        {status.error !== undefined && <p class="problem">{status.error}</p>}
        <dl class="figures">
          <Figure name={t('ids given')} value={count(status.value?.given ?? 0)} />
          <Figure name={t('snowflake worker')} value={snowflake == null ? t('none') : String(snowflake.workerId)} />
          <Figure name={t('its clock')} value={snowflake == null ? '–' : t(snowflake.state)} />
        </dl>
      </section>
      <section aria-label={t('Segment buffers')}>
        <div class="card-head">
          <h2>{t('Segment buffers')}</h2>
          {canOperate.value && status.value?.canAddTags === true && <NewTag onAdded={databases.reload} />}
        </div>
        <RecordTable
          label={t('Segment buffers')}
          rows={buffers.value}
          error={buffers.error}
          id={({ tag, store }) => `${store} ${tag}`}
          empty={t('No tag has been asked for since the hub started.')}
          columns={[
            { title: t('Tag'), cell: ({ tag }) => <code>{tag}</code> },
            { title: t('Database'), cell: ({ store }) => store, isMinor: true },
            { title: t('Next id'), cell: ({ next }) => next, isNumber: true },
            { title: t('Left'), cell: ({ left }) => count(left), isNumber: true },
            { title: t('Ready'), cell: ({ ready }) => count(ready), isNumber: true, isMinor: true },
            { title: t('Step'), cell: ({ step }) => count(step), isNumber: true, isMinor: true },
            {
              title: t('State'),
              cell: ({ error, isLoading }) =>
                error ?? <span class="state handled">{isLoading ? t('loading') : t('serving')}</span>,
            },
          ]}
        />
      </section>
      <section aria-label={t('Databases')}>
        <h2>{t('Databases')}</h2>
        <RecordTable
          label={t('Databases')}
          rows={databases.value}
          error={databases.error}
          id={({ name }) => name}
          empty={t('No database.')}
          columns={[
            { title: t('Database'), cell: ({ name }) => name },
            {
              title: t('State'),
              cell: ({ isUp, error }) => (
                <span class={`state ${isUp ? 'handled' : 'unhandled'}`}>{isUp ? t('up') : (error ?? t('down'))}</span>
              ),
            },
            {
              title: t('Tags'),
              cell: ({ rows }) =>
                rows.length === 0
                  ? t('none')
                  : rows.map(({ tag, maxId, step }) => (
                      <span key={tag} class="line">
                        <code>{tag}</code> <small>{t('given up to {id}, by {step}', { id: maxId, step })}</small>
                      </span>
                    )),
            },
          ]}
        />
      </section>
    </>
  )
}

/** A new tag begins at 1; each hub takes `step` ids of it at a time. */
function NewTag({ onAdded }: { readonly onAdded: () => void }) {
  const [tag, setTag] = useState('')
  const [step, setStep] = useState(1000)
  const add = async (event: SubmitEvent) => {
    event.preventDefault()
    const path = `/api/ids/tags/${encodeURIComponent(tag)}`
    const isDone = await attempt(t('Tag {tag} added.', { tag }), () => call('PUT', path, { step }))
    if (isDone) setTag('')
    onAdded()
  }
  return (
    <form class="fields" onSubmit={(event) => void add(event)}>
      <TextField label={t('New tag')} name="tag" value={tag} onChange={setTag} />
      <NumberField
        label={t('Step')}
        name="step"
        value={step}
        onChange={(next) => next !== undefined && setStep(next)}
      />
      <button type="submit">{t('Add tag')}</button>
    </form>
  )
}
