import type { AlertRouteView, AlertShape } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { call } from '../data/api.ts'
import { CheckField, ChoiceField, TextField } from '../rules/fields.tsx'
import { Dialog } from '../shell/dialog.tsx'
import { t } from '../text/text.ts'

const shapes = ['slack', 'dingtalk', 'feishu', 'teams', 'pagerduty', 'plain'] as const satisfies readonly AlertShape[]

interface RouteFormProps {
  readonly before: AlertRouteView | undefined
  /** Names that are taken. */
  readonly names: readonly string[]
  readonly onClose: () => void
  readonly onSaved: () => void
}

/** One route. Addresses and secrets are never shown again: left empty, those that are there stay. */
export function RouteForm({ before, names, onClose, onSaved }: RouteFormProps) {
  const [name, setName] = useState(before?.name ?? '')
  const [shape, setShape] = useState<AlertShape>(before?.shape ?? 'slack')
  const [url, setUrl] = useState('')
  const [secret, setSecret] = useState('')
  const [severity, setSeverity] = useState<'warning' | 'critical'>(before?.severity ?? 'warning')
  const [alarms, setAlarms] = useState(before?.alarms.join('\n') ?? '')
  const [isEnabled, setEnabled] = useState(before?.isEnabled ?? true)
  const [problem, setProblem] = useState<string>()
  const save = async (event: SubmitEvent) => {
    event.preventDefault()
    if (before === undefined && names.includes(name))
      return setProblem(t('There is a route {name} already: edit that one, or choose another name.', { name }))
    const body = {
      shape,
      severity,
      isEnabled,
      alarms: alarms.split('\n').filter((line) => line !== ''),
      ...(url !== '' && { url }),
      ...(secret !== '' && { secret }),
    }
    try {
      await call('PUT', `/v1/alert-routes/${encodeURIComponent(name)}`, body)
    } catch (error) {
      return setProblem((error as Error).message)
    }
    onSaved()
    onClose()
  }
  const isKept = before !== undefined
  return (
    <Dialog title={isKept ? t('Edit route {name}', { name }) : t('New route')} onClose={onClose}>
      <form class="fields column" onSubmit={(event) => void save(event)}>
        <TextField label={t('Name')} name="name" value={name} isReadOnly={isKept} onChange={setName} />
        <ChoiceField label={t('Shape')} name="shape" value={shape} choices={shapes} onChange={setShape} />
        <TextField
          label={isKept ? t('URL (empty: as before)') : t('URL')}
          name="url"
          value={url}
          isOptional={isKept || shape === 'pagerduty'}
          onChange={setUrl}
        />
        <TextField
          label={isKept ? t('Secret (empty: as before)') : t('Secret or routing key')}
          name="secret"
          value={secret}
          isOptional
          onChange={setSecret}
        />
        <ChoiceField
          label={t('From severity')}
          name="severity"
          value={severity}
          choices={['warning', 'critical']}
          onChange={setSeverity}
        />
        <TextField
          label={t('Only alarms whose id starts with, one per line')}
          name="alarms"
          hasLines
          isOptional
          value={alarms}
          onChange={setAlarms}
        />
        <CheckField label={t('enabled')} name="isEnabled" value={isEnabled} onChange={setEnabled} />
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <p class="buttons">
          <button type="submit" class="primary">
            {t('Save route')}
          </button>
        </p>
      </form>
    </Dialog>
  )
}
