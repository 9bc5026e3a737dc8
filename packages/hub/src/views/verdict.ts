import {
  type AlarmView,
  allReads,
  type KeyHandling,
  type Overview,
  type Safety,
  savedReads,
  type TrafficPoint,
} from '@firebreak/core'
import type { KeyCarrier } from '../fleet/host-register.ts'

/** The inputs of a verdict. */
export interface VerdictFacts {
  readonly isOff: boolean
  /** False if no process has reported recently. */
  readonly hasReporters: boolean
  /** All hot keys by how they are handled. */
  readonly hot: Readonly<Record<KeyHandling, number>>
  /** An alarm that makes everything else doubtful. */
  readonly critical: AlarmView | undefined
  readonly rate: TrafficPoint
  /** Hot keys that a rule wants handled, by who can do it. */
  readonly hotBy: Readonly<Record<KeyCarrier, number>>
  readonly rules: NonNullable<Overview['rules']>
}

/** Whether the fleet is safe, as a word for machines and a sentence for users; if not, the sentence says what to do. */
export function verdictOf(facts: VerdictFacts): { readonly safety: Safety; readonly verdict: string } {
  const { isOff, hasReporters, critical } = facts
  const { handled, observed, unhandled } = facts.hot
  const all = handled + observed + unhandled
  if (isOff) {
    return { safety: 'off', verdict: `Protection is off: ${hotText(all)}, nothing is handled. Switch it on again.` }
  }
  if (critical !== undefined) return { safety: 'unsafe', verdict: `Not safe: ${critical.cause}.` }
  if (unhandled > 0) {
    const many = unhandled === all ? hotText(all) : `${unhandled} of ${all} hot keys`
    const cause = 'not handled: no process that uses them is connected to this hub'
    const verdict = `Not safe: ${many}, ${cause}. Check that the services run with the SDK or behind the proxy.`
    return { safety: 'unsafe', verdict }
  }
  if (!hasReporters)
    return { safety: 'unknown', verdict: 'No sensor is reporting, so we cannot tell whether anything is hot.' }
  if (all === 0) return nothingHot(facts.rules)
  const { reports } = facts.hotBy
  if (handled === 0) {
    const it = all === 1 ? 'it' : 'them'
    if (reports === all) {
      const whose = all === 1 ? 'the services that use it' : 'the services that use them'
      const cause = `${whose} only send reports, so nothing is done about ${it}`
      return { safety: 'observed', verdict: `Only watching: ${hotText(all)}, but ${cause}. ${readTable}` }
    }
    const advice = 'Give a rule a strategy, or set its mode to on.'
    return {
      safety: 'observed',
      verdict: `Only watching: ${hotText(all)} but only observed; nothing is done about ${it}. ${advice}`,
    }
  }
  const away = awayText(facts.rate)
  const { table } = facts.hotBy
  const byTable = table === 0 ? '' : `, ${table === handled ? '' : `${table} `}by programs that read /v1/table`
  if (observed === 0) return { safety: 'safe', verdict: `Safe: ${hotText(handled)} and handled${byTable}${away}.` }
  const why =
    reports === 0
      ? ''
      : ` (${reports} because the services that use ${reports === 1 ? 'it' : 'them'} only send reports)`
  const counts = `${hotText(all)}: ${handled} handled${byTable}, ${observed} only observed${why}${away}.`
  return { safety: 'observed', verdict: counts }
}

const readTable = 'Let them read /v1/table, or run them with the SDK or behind the proxy.'

/** Nothing can become hot without a rule, and nothing is done about it without one that does more than observe. */
function nothingHot({ total, handling }: VerdictFacts['rules']): { safety: Safety; verdict: string } {
  if (handling > 0) return { safety: 'safe', verdict: 'Safe: nothing is hot.' }
  if (total === 0) {
    const verdict = 'Not protected: there are no rules, so no key counts as hot and none is handled. Add a rule.'
    return { safety: 'unknown', verdict }
  }
  const cause = 'nothing is hot, and no rule would handle it: all observe, are in shadow mode or are off'
  return { safety: 'observed', verdict: `Only watching: ${cause}. Give a rule a strategy, or set its mode to on.` }
}

function hotText(count: number): string {
  if (count === 0) return 'nothing is hot'
  return count === 1 ? '1 key is hot' : `${count} keys are hot`
}

function awayText(rate: TrafficPoint): string {
  const saved = savedReads(rate)
  if (saved === 0) return ''
  return `; ${Number(((saved / allReads(rate)) * 100).toFixed(1))} % of all reads never reach Redis`
}
