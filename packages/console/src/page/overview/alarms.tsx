import { type AlarmView, readableKey } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { duration, timeOfDay } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { Dialog } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { keyAddress } from '../shell/route.ts'
import { t } from '../text/text.ts'
import { alarmPlace } from './alarm-place.ts'

const silences = [600_000, 3_600_000, 28_800_000, 86_400_000] as const

interface AlarmsProps {
  readonly alarms: readonly AlarmView[]
  /** So many are shown, with the way to the others. @default all */
  readonly most?: number
  readonly onChange?: () => void
}

/** What is broken right now, what is tried about it, and who looks after it. */
export function Alarms({ alarms, most = alarms.length, onChange }: AlarmsProps) {
  if (alarms.length === 0) return null
  return (
    <section class="alarms" aria-label={t('Alarms')}>
      {alarms.slice(0, most).map((alarm) => (
        <div key={alarm.id} class={`alarm ${alarm.severity} ${alarm.state ?? ''}`}>
          <span class="sign" aria-hidden="true">
            !
          </span>
          <div>
            <b>{alarm.cause}</b>
            <p>
              {alarm.retry} <AlarmPlace of={alarm} />
            </p>
            <AlarmNotes of={alarm} />
          </div>
          <div class="alarm-side">
            {alarm.state !== undefined && <span class={`state ${alarm.state}`}>{t(alarm.state)}</span>}
            <Time at={alarm.since} />
            {canOperate.value && alarm.state !== 'inactive' && <AlarmButtons of={alarm} onChange={onChange} />}
          </div>
        </div>
      ))}
      {alarms.length > most && (
        <p>
          <a href="#/alerts">{t('{n} more alarms', { n: alarms.length - most })}</a>
        </p>
      )}
    </section>
  )
}

/** Where something can be done about it: its key, or the page that it is about. */
function AlarmPlace({ of: { id, subject } }: { readonly of: AlarmView }) {
  if (subject !== undefined) {
    return (
      <a class="button primary" href={keyAddress(subject.redisClusterId, subject.key)}>
        {t('Open {key}', { key: cutMiddle(readableKey(subject.key)) })}
      </a>
    )
  }
  const place = alarmPlace(id)
  if (place === undefined) return null
  return <a href={place.address}>{t('To {page}', { page: t(place.title) })}</a>
}

function AlarmNotes({ of: { acknowledged, silence } }: { readonly of: AlarmView }) {
  return (
    <>
      {acknowledged != null && (
        <p class="muted">
          {t('Seen by {who} at {time}.', { who: acknowledged.who, time: timeOfDay(acknowledged.at) })}
        </p>
      )}
      {silence != null && (
        <p class="muted">
          {t('Silenced by {who} until {time}: {why}', {
            who: silence.who,
            time: timeOfDay(silence.until),
            why: silence.why,
          })}
        </p>
      )}
    </>
  )
}

interface AlarmButtonsProps {
  readonly of: AlarmView
  readonly onChange: (() => void) | undefined
}

function AlarmButtons({ of: { id, acknowledged, silence }, onChange }: AlarmButtonsProps) {
  const [isAsking, setAsking] = useState(false)
  const path = `/v1/alarms/${encodeURIComponent(id)}`
  const change = async (done: string, method: 'PUT' | 'DELETE', what: string, body?: object) => {
    const undo = () => call('DELETE', `${path}/${what}`)
    await attempt(done, () => call(method, `${path}/${what}`, body), method === 'PUT' ? undo : undefined)
    onChange?.()
  }
  return (
    <span class="tools">
      {isAsking && (
        <SilenceForm
          onClose={() => setAsking(false)}
          onSilence={(forMs, why) =>
            void change(t('Silenced for {time}.', { time: duration(forMs) }), 'PUT', 'silence', { forMs, why })
          }
        />
      )}
      {acknowledged == null && (
        <button type="button" onClick={() => void change(t('Acknowledged.'), 'PUT', 'acknowledgement', {})}>
          {t('Acknowledge')}
        </button>
      )}
      {silence == null ? (
        <button type="button" onClick={() => setAsking(true)}>
          {t('Silence …')}
        </button>
      ) : (
        <button type="button" onClick={() => void change(t('Notifications resumed.'), 'DELETE', 'silence')}>
          {t('Resume notifications')}
        </button>
      )}
    </span>
  )
}

interface SilenceFormProps {
  readonly onClose: () => void
  readonly onSilence: (forMs: number, why: string) => void
}

/** For how long nobody is told, and why: whoever comes next wants to know. */
function SilenceForm({ onClose, onSilence }: SilenceFormProps) {
  const [forMs, setForMs] = useState<number>(silences[1])
  const [why, setWhy] = useState('')
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    onClose()
    onSilence(forMs, why.trim() || t('from the console'))
  }
  return (
    <Dialog title={t('Silence this alarm')} onClose={onClose}>
      <form class="fields" onSubmit={submit}>
        <label>
          {t('For')}
          <select name="forMs" value={forMs} onChange={(event) => setForMs(Number(event.currentTarget.value))}>
            {silences.map((one) => (
              <option key={one} value={one}>
                {duration(one)}
              </option>
            ))}
          </select>
        </label>
        <label class="wide">
          {t('Why')}
          <input name="why" value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          {t('Silence')}
        </button>
      </form>
    </Dialog>
  )
}
