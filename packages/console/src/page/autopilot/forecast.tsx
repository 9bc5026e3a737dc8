import type { ForecastMode, ForecastSettings, ForecastView } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { count, duration, percent } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { KeyLink, KeyName } from '../keys/key-link.tsx'
import { NumberField, TextField } from '../rules/fields.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

const modes = ['off', 'suggest', 'do'] as const satisfies readonly ForecastMode[]
const modeTitles = { off: 'off', suggest: 'only suggest', do: 'warm automatically' } as const
const minute = 60_000

/** Heat that comes back, and whether it is warmed shortly before. */
export function Forecast() {
  const { value, error, reload } = useLoaded<ForecastView>('/v1/forecast', 5000)
  return (
    <section aria-label={t('Recurring heat')}>
      <h2>{t('Recurring heat')}</h2>
      {value !== undefined && (
        <SettingsForm key={JSON.stringify(value.settings)} before={value.settings} onSaved={reload} />
      )}
      <RecordTable
        label={t('Recurring heat')}
        rows={value?.recurrences}
        error={error}
        id={({ id }) => id}
        empty={t('Nothing has recurred three times at the same time of day or week yet.')}
        columns={[
          {
            title: t('Key'),
            cell: ({ redisClusterId, name, isPrefix }) =>
              isPrefix ? (
                <>
                  <KeyName text={name} />*<span class="cluster">{redisClusterId}</span>
                </>
              ) : (
                <KeyLink redisClusterId={redisClusterId} text={name} hasCluster />
              ),
          },
          {
            title: t('When'),
            cell: ({ when, spreadMs, cycle }) => (
              <>
                {t(cycle)} · {when}
                <small>± {duration(spreadMs)}</small>
              </>
            ),
          },
          {
            title: t('Sure'),
            cell: ({ confidence, isTrusted }) => (
              <>
                {percent(confidence)}
                <small>{isTrusted ? t('sure enough to warm') : t('not sure enough')}</small>
              </>
            ),
            isNumber: true,
          },
          {
            title: t('Came'),
            cell: ({ seen, missed }) =>
              t('{seen} times, missed {missed}', { seen: count(seen), missed: count(missed) }),
            isMinor: true,
          },
          { title: t('Expected next'), cell: ({ nextAt }) => <Time at={nextAt} />, isTight: true },
          { title: t('Warmed at'), cell: ({ warmAt }) => <Time at={warmAt} />, isTight: true, isMinor: true },
          { title: t('Keys'), cell: ({ keys }) => count(keys.length), isNumber: true },
        ]}
      />
    </section>
  )
}

interface SettingsFormProps {
  readonly before: ForecastSettings
  readonly onSaved: () => void
}

function SettingsForm({ before, onSaved }: SettingsFormProps) {
  const [leadMinutes, setLead] = useState(before.leadMs / minute)
  const [timeZone, setTimeZone] = useState(before.timeZone)
  const save = async (next: ForecastSettings) => {
    const put = (settings: ForecastSettings) => call('PUT', '/v1/forecast/settings', settings)
    await attempt(
      t('Settings saved.'),
      () => put(next),
      () => put(before).finally(onSaved),
    )
    onSaved()
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    void save({ ...before, leadMs: Math.round(leadMinutes * minute), timeZone })
  }
  if (!canOperate.value) {
    return (
      <p class="muted">
        {t(modeTitles[before.mode])} · {t('{time} before', { time: duration(before.leadMs) })} · {before.timeZone}
      </p>
    )
  }
  return (
    <form class="fields" onSubmit={submit}>
      <fieldset class="choices" aria-label={t('Recurring heat')}>
        {modes.map((mode) => (
          <button
            key={mode}
            type="button"
            aria-pressed={before.mode === mode}
            onClick={() => void save({ ...before, mode })}
          >
            {t(modeTitles[mode])}
          </button>
        ))}
      </fieldset>
      <NumberField
        label={t('Minutes before')}
        name="lead"
        min={0}
        max={60}
        value={leadMinutes}
        onChange={(next) => next !== undefined && setLead(next)}
      />
      <TextField label={t('Time zone')} name="timeZone" value={timeZone} onChange={setTimeZone} />
      <button type="submit">{t('Save')}</button>
    </form>
  )
}
