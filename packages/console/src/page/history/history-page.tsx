import type { AuditEntry, HistoryEvent } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { timeOfDay } from '../format/format.ts'
import { KeyLink } from '../keys/key-link.tsx'

/** What happened, and who changed what. */
export function HistoryPage() {
  const history = useLoaded<{ events: HistoryEvent[] }>('/v1/history?limit=200')
  const audit = useLoaded<{ entries: AuditEntry[] }>('/v1/audit?limit=100', 5000)
  return (
    <>
      <section>
        <h2>What happened</h2>
        {history.error && <p class="problem">{history.error}</p>}
        <table>
          <tbody>
            {history.value?.events.map((event) => (
              <tr key={`${event.at} ${event.key} ${event.kind}`}>
                <td>{timeOfDay(event.at)}</td>
                <td>{event.kind}</td>
                <td>{event.key !== '' && <KeyLink redisClusterId={event.redisClusterId} text={event.key} />}</td>
                <td>{event.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {history.value?.events.length === 0 && <p class="empty">Nothing yet.</p>}
      </section>
      <section>
        <h2>Who changed what</h2>
        {audit.error && <p class="problem">{audit.error}</p>}
        <table>
          <tbody>
            {audit.value?.entries.map((entry) => (
              <tr key={`${entry.at} ${entry.what}`}>
                <td>{timeOfDay(entry.at)}</td>
                <td>{entry.who}</td>
                <td>{entry.what}</td>
                <td>
                  <details>
                    <summary>before and after</summary>
                    <pre>{JSON.stringify({ before: entry.before, after: entry.after }, null, 2)}</pre>
                  </details>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {audit.value?.entries.length === 0 && <p class="empty">No change yet.</p>}
      </section>
    </>
  )
}
