import type { RuleSet } from '@firebreak/core/rules'
import type { AlarmBoard } from '../alarms/alarm-board.ts'

/** A report counts as one moment: if it covers more time than a window, keys look hotter than they are. */
export function tellShortWindows(alarms: AlarmBoard, { rules }: RuleSet, reportIntervalMs: number): void {
  const short = rules.filter(({ mode, windowMs }) => mode !== 'off' && windowMs < reportIntervalMs)
  if (short.length === 0) {
    alarms.clear('report-interval')
    return
  }
  const ids = short.slice(0, 5).map(({ id }) => id)
  const cause = `sensors report every ${reportIntervalMs} ms, which is longer than the window of the rules ${ids.join(', ')}: they make keys hot that are not`
  const retry = 'raise windowMs of these rules, or lower reportIntervalMs'
  alarms.raise({ id: 'report-interval', severity: 'warning', cause, retry })
}

/** Rules of a later version are left alone and raise an alarm. */
export function tellUnknown(alarms: AlarmBoard, { unknownIds }: RuleSet): void {
  if (unknownIds.length === 0) {
    alarms.clear('rules-newer')
    return
  }
  const cause = `the store has rules that this version does not support: ${unknownIds.slice(0, 5).join(', ')}`
  const retry = 'this hub leaves them and their keys alone, while others follow them; upgrade this hub'
  alarms.raise({ id: 'rules-newer', severity: 'warning', cause, retry })
}
