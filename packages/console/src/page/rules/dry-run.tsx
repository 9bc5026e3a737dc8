import type { DryRunView } from '@firebreak/core'
import { useEffect, useState } from 'preact/hooks'
import { call } from '../data/api.ts'
import { count, duration, percent, timeOfDay } from '../format/format.ts'
import { KeyLink } from '../keys/key-link.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import type { RuleDraft } from './rule-draft.ts'

const pauseMs = 400
const againMs = 1500
const tries = 10
const shownKeys = 12

/** What the rule would have done in what was recorded, asked whenever somebody stops typing. */
export function DryRun({ draft: { json, problem } }: { readonly draft: RuleDraft }) {
  const [run, setRun] = useState<DryRunView>()
  const [refused, setRefused] = useState<string>()
  useEffect(() => {
    if (problem !== undefined) return
    let isWanted = true
    const ask = async (triesLeft: number) => {
      try {
        const body = { ...(JSON.parse(json) as object) } as { id?: string }
        // A rule that has no name yet can be tried all the same.
        const found = await call<DryRunView>('POST', '/v1/rules/draft/dry-run', { ...body, id: 'draft' })
        if (!isWanted) return
        setRun(found)
        setRefused(undefined)
      } catch (error) {
        if (!isWanted) return
        setRefused((error as Error).message)
        // The hub may be busy with what somebody typed a moment before.
        if (triesLeft > 0) timer = setTimeout(() => void ask(triesLeft - 1), againMs)
      }
    }
    let timer = setTimeout(() => void ask(tries), pauseMs)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [json, problem])
  return (
    <div class="dry-run" aria-live="polite">
      <h3>{t('Dry run on recorded traffic')}</h3>
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
                spans
                  .slice(0, 3)
                  .map(({ from, to }) => `${timeOfDay(from)}–${timeOfDay(to)}`)
                  .join(', '),
            },
            { title: t('Kept from Redis'), cell: ({ savedReads }) => count(savedReads), isNumber: true },
          ]}
        />
      )}
    </>
  )
}
