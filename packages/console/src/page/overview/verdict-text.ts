import type { Overview, Safety } from '@firebreak/core'
import { language, t } from '../text/text.ts'

/** The hub writes English; in another language the sentence is made of its facts. */
export function verdictText(now: Overview, safety: Safety): string {
  if (language.value === 'en') return now.verdict
  const { handled = 0, observed = 0, unhandled = 0 } = now.hot ?? {}
  const all = handled + observed + unhandled
  const values = { all, handled, observed, unhandled, table: now.hotBy?.table ?? 0, reports: now.hotBy?.reports ?? 0 }
  const critical = now.alarms.find(({ severity }) => severity === 'critical')
  switch (safety) {
    case 'off':
      return t('Protection is off: {all} hot keys, nothing is handled. Switch it on again.', values)
    case 'unsafe':
      return critical === undefined
        ? t(
            'Not safe: {unhandled} of {all} hot keys are not handled. Check that the services run with the SDK or behind the proxy.',
            values,
          )
        : t('Not safe: {cause}', { cause: critical.cause })
    case 'unknown':
      return now.rules?.total === 0 && now.sensors.hosts > 0
        ? t('Not protected: there are no rules, so no key counts as hot and none is handled. Add a rule.')
        : t('No sensor is reporting, so we cannot tell whether anything is hot.')
    case 'observed':
      return observedText(values)
    case 'safe':
      if (all === 0) return t('Safe: nothing is hot.')
      return values.table > 0
        ? t('Safe: {all} hot keys, all handled, {table} of them by programs that read /v1/table.', values)
        : t('Safe: {all} hot keys, all handled.', values)
  }
}

function observedText(values: Readonly<Record<'all' | 'reports', number>>): string {
  if (values.all === 0) {
    return t(
      'Only watching: nothing is hot, and no rule would handle it. Give a rule a strategy, or set its mode to on.',
    )
  }
  if (values.reports === values.all) {
    return t(
      'Only watching: {all} hot keys, whose services only send reports. Let them read /v1/table, or run them with the SDK or behind the proxy.',
      values,
    )
  }
  if (values.reports > 0) {
    return t(
      '{all} hot keys: {handled} handled, {observed} only observed ({reports} because their services only send reports).',
      values,
    )
  }
  return t('{all} hot keys: {handled} handled, {observed} only observed.', values)
}

/** Hubs of earlier versions say only whether we are safe. */
export function safetyOf({ safety, isOff, isSafe }: Overview): Safety {
  return safety ?? (isOff ? 'off' : isSafe ? 'safe' : 'unsafe')
}
