import { type AlarmView, allReads, type KeyHandling, type Safety, savedReads, type TrafficPoint } from '@firebreak/core'

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
  if (all === 0) return { safety: 'safe', verdict: 'Safe: nothing is hot.' }
  if (handled === 0) {
    return {
      safety: 'observed',
      verdict: `Only watching: ${hotText(all)} but only observed; nothing is done about ${all === 1 ? 'it' : 'them'}.`,
    }
  }
  const away = awayText(facts.rate)
  if (observed === 0) return { safety: 'safe', verdict: `Safe: ${hotText(handled)} and handled${away}.` }
  return { safety: 'observed', verdict: `${hotText(all)}: ${handled} handled, ${observed} only observed${away}.` }
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
