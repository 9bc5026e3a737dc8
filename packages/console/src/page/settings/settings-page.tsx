import type { HistorySettingsView } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canAdminister, signedIn } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { bytes, count, dateTime } from '../format/format.ts'
import { Figure } from '../overview/verdict.tsx'
import { NumberField } from '../rules/fields.tsx'
import { attempt } from '../shell/notices.tsx'
import { setTheme, theme, themes, themeTitles } from '../shell/theme.ts'
import { type Language, language, languages, setLanguage, t } from '../text/text.ts'
import { Tokens } from './tokens.tsx'

const languageTitles: Readonly<Record<Language, string>> = { en: 'English', zh: '中文' }

/** How the page looks here, what is kept, and who may come in. */
export function SettingsPage() {
  return (
    <>
      <section aria-label={t('This browser')}>
        <h1>{t('Settings')}</h1>
        <h2>{t('This browser')}</h2>
        <div class="fields">
          <Choice
            label={t('Theme')}
            choices={themes.map((one) => [one, t(themeTitles[one])] as const)}
            value={theme.value}
            onChange={setTheme}
          />
          <Choice
            label={t('Language')}
            choices={languages.map((one) => [one, languageTitles[one]] as const)}
            value={language.value}
            onChange={(next) => void setLanguage(next)}
          />
        </div>
        {signedIn.value !== undefined && (
          <p class="muted">{t('You are {who}, {role}.', { who: signedIn.value.who, role: t(signedIn.value.role) })}</p>
        )}
      </section>
      <Retention />
      {canAdminister.value && <Tokens />}
    </>
  )
}

interface ChoiceProps<T extends string> {
  readonly label: string
  readonly choices: readonly (readonly [T, string])[]
  readonly value: T
  readonly onChange: (value: T) => void
}

function Choice<T extends string>({ label, choices, value, onChange }: ChoiceProps<T>) {
  return (
    <fieldset class="choices labelled" aria-label={label}>
      <span>{label}</span>
      {choices.map(([one, title]) => (
        <button key={one} type="button" aria-pressed={value === one} onClick={() => onChange(one)}>
          {title}
        </button>
      ))}
    </fieldset>
  )
}

const mebi = 1_048_576
const hour = 3_600_000

/** What history is kept, and what it costs. */
function Retention() {
  const { value, error, reload } = useLoaded<HistorySettingsView>('/v1/history/settings', 10_000)
  return (
    <section aria-label={t('History')}>
      <h2>{t('What history is kept, and what it costs')}</h2>
      {error !== undefined && <p class="problem">{error}</p>}
      {value !== undefined && (
        <>
          <dl class="figures">
            <Figure name={t('in the store now')} value={bytes(value.cost.keptBytes)} />
            <Figure
              name={t('per day, recently')}
              value={value.cost.bytesPerDay === null ? '–' : bytes(value.cost.bytesPerDay)}
            />
            <Figure name={t('at most, for each hub')} value={bytes(value.cost.maxKeptBytes)} />
          </dl>
          {value.cost.decisions !== undefined && <DecisionCost of={value.cost.decisions} />}
          <RetentionForm key={JSON.stringify([value.keepMs, value.maxBytesPerDay])} before={value} onSaved={reload} />
        </>
      )}
    </section>
  )
}

/** Decisions are kept beside the heat, as long as its minutes. */
function DecisionCost({ of }: { readonly of: NonNullable<HistorySettingsView['cost']['decisions']> }) {
  return (
    <p class="muted">
      {t('{n} decisions as well, {bytes}; at most {most} more per day.', {
        n: count(of.kept),
        bytes: bytes(of.keptBytes),
        most: bytes(of.maxBytesPerDay),
      })}
      {of.from !== null && ` ${t('Decisions are kept from {time} on.', { time: dateTime(of.from) })}`}
    </p>
  )
}

function RetentionForm({ before, onSaved }: { readonly before: HistorySettingsView; readonly onSaved: () => void }) {
  const [perDay, setPerDay] = useState(before.maxBytesPerDay / mebi)
  const [second, setSecond] = useState(before.keepMs.second / hour)
  const [tenSeconds, setTenSeconds] = useState(before.keepMs.tenSeconds / hour)
  const [minute, setMinute] = useState(before.keepMs.minute / hour)
  const put = (settings: Pick<HistorySettingsView, 'maxBytesPerDay' | 'keepMs'>) =>
    call('PUT', '/v1/history/settings', { maxBytesPerDay: settings.maxBytesPerDay, keepMs: settings.keepMs })
  const save = async (event: SubmitEvent) => {
    event.preventDefault()
    const keepMs = { second: second * hour, tenSeconds: tenSeconds * hour, minute: minute * hour }
    await attempt(
      t('Settings saved.'),
      () => put({ maxBytesPerDay: Math.round(perDay * mebi), keepMs }),
      () => put(before),
    )
    onSaved()
  }
  const field = (label: string, name: string, value: number, set: (value: number) => void) => (
    <NumberField
      label={label}
      name={name}
      value={value}
      isReadOnly={!canAdminister.value}
      onChange={(next) => next !== undefined && set(next)}
    />
  )
  return (
    <form class="fields" onSubmit={(event) => void save(event)}>
      {field(t('Maximum MiB per day'), 'maxBytesPerDay', perDay, setPerDay)}
      {field(t('Hours of points of 1 s'), 'second', second, setSecond)}
      {field(t('Hours of points of 10 s'), 'tenSeconds', tenSeconds, setTenSeconds)}
      {field(t('Hours of points of 1 min'), 'minute', minute, setMinute)}
      {canAdminister.value && (
        <button type="submit" class="primary">
          {t('Save')}
        </button>
      )}
    </form>
  )
}
