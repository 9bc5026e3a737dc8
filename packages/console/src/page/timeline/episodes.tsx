import type { EpisodesView, HotEpisode } from '@firebreak/core'
import { duration, milliseconds, timeOfDay } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { KeyLink } from '../keys/key-link.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface EpisodesProps {
  readonly view: EpisodesView | undefined
  readonly error: string | undefined
  readonly isOfOneKey?: boolean
}

/** Each time that a key was hot: detected → delivered → handled → cooled, with the time of each step. */
export function Episodes({ view, error, isOfOneKey = false }: EpisodesProps) {
  return (
    <>
      {view !== undefined && view.total > 0 && (
        <p class="muted">
          {t('Hot {n} times; from decision to delivery {delivered}, to the first read served {handled} (medians)', {
            n: view.total,
            delivered: view.deliveredMs === null ? '–' : milliseconds(view.deliveredMs),
            handled: view.handledMs === null ? '–' : milliseconds(view.handledMs),
          })}
        </p>
      )}
      <RecordTable
        label={t('Episodes')}
        rows={view?.episodes}
        error={error}
        id={({ redisClusterId, key, ruleId, detectedAt }) => `${redisClusterId} ${key} ${ruleId} ${detectedAt}`}
        empty={t('No key was hot in this period.')}
        columns={[
          { title: t('Detected'), cell: ({ detectedAt }) => <Time at={detectedAt} />, isTight: true },
          ...(isOfOneKey
            ? []
            : [
                {
                  title: t('Key'),
                  cell: ({ redisClusterId, key }: HotEpisode) => <KeyLink redisClusterId={redisClusterId} text={key} />,
                },
              ]),
          { title: t('Steps'), cell: (episode) => <Steps of={episode} /> },
          { title: t('Lasted'), cell: (episode) => lastedText(episode), isNumber: true, isTight: true },
          {
            title: t('Rule'),
            cell: ({ ruleId, isShadow }) => (
              <>
                <a href={`#/rules?edit=${encodeURIComponent(ruleId)}`}>{ruleId}</a>
                {isShadow && <small>{t('shadow')}</small>}
              </>
            ),
            isMinor: true,
          },
          { title: t('Strategy'), cell: ({ strategies }) => strategies.join(' → ') || '–', isMinor: true },
          { title: t('Services'), cell: ({ services }) => services.join(', ') || '–', isMinor: true },
          { title: t('Why'), cell: ({ reason }) => <span class="reason">{withoutRule(reason)}</span>, isMinor: true },
        ]}
      />
    </>
  )
}

/** The rule stands beside it. */
function withoutRule(reason: string): string {
  return reason.replace(/^hot because rule `[^`]*`: /, '')
}

function lastedText({ detectedAt, cooledAt, end }: HotEpisode): string {
  if (cooledAt === null) return t('still hot')
  return `${duration(cooledAt - detectedAt)}${end === 'rollback' ? ` · ${t('rolled back')}` : ''}`
}

/** A dot for each step that was reached, with the time after the one before. */
function Steps({ of: { detectedAt, deliveredAt, handledAt, cooledAt } }: { readonly of: HotEpisode }) {
  const steps = [
    [t('detected'), detectedAt, undefined],
    [t('delivered'), deliveredAt, detectedAt],
    [t('handled'), handledAt, deliveredAt ?? detectedAt],
    [t('cooled'), cooledAt, handledAt ?? detectedAt],
  ] as const
  return (
    <ol class="steps">
      {steps.map(([name, at, before]) => (
        <li
          key={name}
          class={at === null ? undefined : 'is-done'}
          title={at === null ? name : `${name} ${timeOfDay(at)}`}
        >
          {name}
          {at !== null && before !== undefined && <small>+{milliseconds(Math.max(0, at - before))}</small>}
        </li>
      ))}
    </ol>
  )
}
