import type { DryRunView } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { count, dateTime, duration, percent } from '../format/format.ts'
import { KeyLink } from '../keys/key-link.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { hubNow } from '../timeline/range.tsx'
import type { RuleDraft } from './rule-draft.ts'
import { useDryRun } from './use-dry-run.ts'

const shownKeys = 12
const periods = [3_600_000, 21_600_000, 86_400_000] as const

/** What the rule would have done in what was recorded, asked whenever somebody stops typing. */
export function DryRun({ draft: { json, problem } }: { readonly draft: RuleDraft }) {
  const [period, setPeriod] = useState<{ readonly length: number; readonly query: string }>()
  const { run, refused } = useDryRun(problem === undefined ? json : undefined, period?.query)
  return (
    <div class="dry-run" aria-live="polite">
      <div class="card-head">
        <h3>{t('Dry run on recorded traffic')}</h3>
        <fieldset class="choices" aria-label={t('Period')}>
          {periods.map((length) => (
            <button
              key={length}
              type="button"
              aria-pressed={(period?.length ?? periods[0]) === length}
              onClick={() => {
                const to = Math.floor(hubNow())
                setPeriod({ length, query: `?from=${to - length}&to=${to}` })
              }}
            >
              {duration(length)}
            </button>
          ))}
        </fieldset>
      </div>
      {refused !== undefined ? (
        <p class="problem">{refused}</p>
      ) : run === undefined ? (
        <p class="empty">…</p>
      ) : (
        <Found run={run} />
      )}
    </div>
  )
}

function Found({ run }: { readonly run: DryRunView }) {
  return (
    <>
      <p>
        {t('In the last {time}: {keys} keys hot {firings} times, {share} of all reads', {
          time: duration(run.seconds * 1000),
          keys: count(run.keys),
          firings: count(run.firings),
          share: percent(run.readShare),
        })}
        {run.savedReads !== undefined && `; ${t('{n} reads kept from Redis', { n: count(run.savedReads) })}`}
      </p>
      {run.hot !== undefined && (
        <RecordTable
          label={t('Keys of the dry run')}
          rows={run.hot.slice(0, shownKeys)}
          id={({ redisClusterId, key }) => `${redisClusterId} ${key}`}
          empty={t('No recorded key would have been hot.')}
          columns={[
            {
              title: t('Key'),
              cell: ({ redisClusterId, key }) => <KeyLink redisClusterId={redisClusterId} text={key} />,
            },
            { title: t('Times'), cell: ({ firings }) => count(firings), isNumber: true },
            {
              title: t('When'),
              cell: ({ spans }) =>
                spans[0] !== undefined && (
                  <>
                    {dateTime(spans[0].from)}
                    <small>
                      {t('for {time}', { time: duration(spans[0].to - spans[0].from) })}
                      {spans.length > 1 && `, ${t('and {n} more', { n: count(spans.length - 1) })}`}
                    </small>
                  </>
                ),
            },
            { title: t('Kept from Redis'), cell: ({ savedReads }) => count(savedReads), isNumber: true },
          ]}
        />
      )}
    </>
  )
}
