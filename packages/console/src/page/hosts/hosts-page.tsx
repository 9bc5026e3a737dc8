import type { HostView } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { ago, rate } from '../format/format.ts'

/** The live processes that report here. */
export function HostsPage() {
  const { value, error } = useLoaded<{ hosts: HostView[] }>('/v1/hosts')
  const now = overview.value?.hubTime ?? Date.now()
  return (
    <section>
      <h2>Hosts</h2>
      {error && <p class="problem">{error}</p>}
      <table>
        <thead>
          <tr>
            <th>Service</th>
            <th>Host</th>
            <th>Process</th>
            <th>Agent</th>
            <th class="number">Rate</th>
            <th class="number">Table</th>
            <th class="number">Clock off by</th>
            <th>Watchers</th>
            <th>Seen</th>
          </tr>
        </thead>
        <tbody>
          {value?.hosts.map((host) => (
            <tr key={host.instanceId}>
              <td>{host.serviceId}</td>
              <td>{host.hostId}</td>
              <td>
                <code>{host.instanceId}</code>
              </td>
              <td>{host.agent}</td>
              <td class="number">{rate(host.ratePerSecond)}</td>
              <td class="number">{host.isOff ? 'off' : host.tableVersion}</td>
              <td class="number">{Math.round(host.clockOffsetMs)} ms</td>
              <td>
                {host.watchers
                  .map(({ kind, state, detail }) => `${kind}: ${state}${detail ? ` (${detail})` : ''}`)
                  .join(', ') || '–'}
              </td>
              <td>{ago(host.lastSeenAt, now)} ago</td>
            </tr>
          ))}
        </tbody>
      </table>
      {value?.hosts.length === 0 && <p class="empty">No sensor is connected.</p>}
    </section>
  )
}
