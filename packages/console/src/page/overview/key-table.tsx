import type { KeyView } from '@firebreak/core'
import { ago, percent, rate } from '../format/format.ts'
import { KeyLink } from '../keys/key-link.tsx'
import { Sparkline } from './sparkline.tsx'

/** The hottest keys with their state, what is done and why. */
export function KeyTable({ keys, hubTime }: { readonly keys: readonly KeyView[]; readonly hubTime: number }) {
  if (keys.length === 0) {
    return (
      <p class="empty">
        No accesses seen yet. Protect a client, or run <code>npm run demo</code> in another terminal.
      </p>
    )
  }
  return (
    <table class="keys">
      <thead>
        <tr>
          <th>Key</th>
          <th class="number">Rate</th>
          <th class="number">Share</th>
          <th>Last minute</th>
          <th>State</th>
          <th>Handled by</th>
          <th>Why</th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={`${key.redisClusterId} ${key.key}`} class={key.state}>
            <td class="key">
              <KeyLink redisClusterId={key.redisClusterId} text={key.key} />
              <small>
                {key.redisClusterId} · {key.hosts} {key.hosts === 1 ? 'host' : 'hosts'}
              </small>
            </td>
            <td class="number">
              {rate(key.ratePerSecond)}
              {key.errorPerSecond > 0 && <small>± {rate(key.errorPerSecond)}</small>}
            </td>
            <td class="number">{percent(key.share)}</td>
            <td>
              <Sparkline values={key.sparkline} />
            </td>
            <td>
              <span class={`state ${key.state}`}>{key.state}</span>
              {key.since !== null && <small>{ago(key.since, hubTime)}</small>}
            </td>
            <td>
              {key.strategy?.strategy ?? '–'}
              {key.handling === 'unhandled' && <small class="problem">not carried out</small>}
              {key.handling === 'observed' && <small>only observed</small>}
              {key.effect !== null && <small>{percent(key.effect.localHitRate)} from memory</small>}
            </td>
            <td class="reason">{key.reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
