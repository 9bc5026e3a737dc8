import type { KeyEffectView, KeyView } from '@firebreak/core'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { Sparkline } from '../chart/sparkline.tsx'
import { overview } from '../data/live.ts'
import { ago, bytes, percent, rate } from '../format/format.ts'
import { rowSlots } from '../table/row-slots.ts'
import { ScrollFrame } from '../table/scroll-frame.tsx'
import { steadyOrder } from '../table/steady-order.ts'
import { useHold } from '../table/use-hold.ts'
import { t } from '../text/text.ts'
import { KeyLink } from './key-link.tsx'

interface KeyTableProps {
  readonly keys: readonly KeyView[]
  /** Fewer columns, for the overview. */
  readonly isShort?: boolean
  /** Extra cells before and after a row. */
  readonly lead?: (key: KeyView) => ComponentChildren
  readonly tail?: (key: KeyView) => ComponentChildren
  readonly heading?: (column: string, title: string) => ComponentChildren
  readonly empty?: string
}

export function keyId({ redisClusterId, key }: Pick<KeyView, 'redisClusterId' | 'key'>): string {
  return `${redisClusterId}\u0000${key}`
}

/** Keys with their rate, what is done and why. Rows keep their places under the pointer and the focus. */
export function KeyTable({ keys, isShort = false, lead, tail, heading = (_, title) => title, empty }: KeyTableProps) {
  const { isHeld, props } = useHold(keys.length === 0)
  const slots = useRef<ReadonlyMap<string, number>>(new Map())
  if (keys.length === 0) return <p class="empty">{empty ?? t('No key is used right now.')}</p>
  const rows = isHeld ? steadyOrder([...slots.current.keys()], keys, keyId) : keys
  slots.current = rowSlots(slots.current, rows.map(keyId), !isHeld)
  const places = new Map(keys.map((key, place) => [keyId(key), place + 1]))
  const now = overview.value?.hubTime ?? Date.now()
  return (
    <ScrollFrame label={t('Hottest keys')}>
      <table class={isShort ? 'keys is-short' : 'keys'}>
        <thead>
          <tr>
            {lead && (
              <th class="pinning tight">
                <span class="unseen">{t('Pinned')}</span>
              </th>
            )}
            <th class="rank number tight">#</th>
            <th>{heading('name', t('Key'))}</th>
            <th class="number">{heading('rate', t('Rate'))}</th>
            {!isShort && <th class="number minor">{heading('rate10', t('10 s'))}</th>}
            {!isShort && <th class="number minor">{heading('rate60', t('1 min'))}</th>}
            <th class="number minor">{heading('share', t('Share'))}</th>
            {!isShort && (
              <th class="number minor">
                <span class="line">{heading('reads', t('Reads'))}</span>
                <span class="line">{heading('writes', t('Writes'))}</span>
              </th>
            )}
            {!isShort && <th class="number minor">{heading('bytes', t('Bytes'))}</th>}
            <th class="minor">{t('Last minute')}</th>
            <th>{t('State')}</th>
            <th>{t('Handled by')}</th>
            {!isShort && <th class="minor">{heading('hosts', t('Services'))}</th>}
            {isShort && <th class="minor">{t('Why')}</th>}
            {tail && (
              <th class="row-actions">
                <span class="unseen">{t('Actions')}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody {...props}>
          {rows.map((key) => {
            // The place among all keys; hubs of earlier versions say only the place on this page.
            const rank = key.rank ?? places.get(keyId(key))!
            return (
              <tr key={slots.current.get(keyId(key))} class={key.state}>
                {lead && <td class="pinning tight">{lead(key)}</td>}
                <td class="rank number tight">
                  {rank} <Move by={key.rankMove} />
                </td>
                <td class="key">
                  <KeyLink redisClusterId={key.redisClusterId} text={key.key} />
                </td>
                <td class="number strong">
                  {rate(key.ratePerSecond)}
                  {key.errorPerSecond > 0 && <small>± {rate(key.errorPerSecond)}</small>}
                </td>
                {!isShort && <td class="number minor">{rate(key.rates?.tenSeconds ?? 0)}</td>}
                {!isShort && <td class="number minor">{rate(key.rates?.minute ?? 0)}</td>}
                <td class="number minor">{percent(key.share)}</td>
                {!isShort && (
                  <td class="number minor">
                    {rate(Math.max(0, key.ratePerSecond - key.writesPerSecond))}
                    <small>{t('{rate} written', { rate: rate(key.writesPerSecond) })}</small>
                  </td>
                )}
                {!isShort && <td class="number minor">{bytes(key.bytesPerSecond)}/s</td>}
                <td class="minor">
                  <Sparkline values={key.sparkline} />
                </td>
                <td>
                  <StateBadge state={key.state} />
                  {key.since !== null && <small>{ago(key.since, now)}</small>}
                </td>
                <td class="handling">
                  <Handling of={key} />
                </td>
                {!isShort && (
                  <td class="minor">
                    <span class="whole-line">{key.services?.join(', ') ?? '–'}</span>
                    <small>{key.hosts === 1 ? t('1 host') : t('{n} hosts', { n: key.hosts })}</small>
                  </td>
                )}
                {isShort && <td class="reason minor">{key.reason}</td>}
                {tail && <td class="row-actions">{tail(key)}</td>}
              </tr>
            )
          })}
        </tbody>
      </table>
    </ScrollFrame>
  )
}

export function StateBadge({ state }: { readonly state: KeyView['state'] }) {
  return <span class={`state ${state}`}>{t(state)}</span>
}

function Handling({ of: { strategy, handling, effect, carrier } }: { readonly of: KeyView }) {
  return (
    <>
      {handling === 'observed' ? t('only observed') : (strategy?.strategy ?? '–')}
      {handling === 'unhandled' && <small class="problem">{t('not carried out')}</small>}
      {carrier === 'reports' && <small>{t('reports only')}</small>}
      {handling === 'handled' && carrier === 'table' && <small>{t('by /v1/table')}</small>}
      {handling === 'observed' && carrier == null && strategy !== null && strategy.strategy !== 'Observe' && (
        <small>{t('{strategy} in shadow', { strategy: strategy.strategy })}</small>
      )}
      {effect !== null && handling === 'handled' && <small>{effectText(strategy, effect)}</small>}
    </>
  )
}

/** What a strategy brings, in the figure that tells of it. */
function effectText(strategy: KeyView['strategy'], effect: KeyEffectView): string {
  if (strategy?.strategy === 'RateLimit') return t('{rate} reach Redis', { rate: rate(effect.redisPerSecondNow) })
  if (strategy?.strategy === 'RedundantKeys') return t('over {n} copies', { n: strategy.copies.length })
  return t('{share} from memory', { share: percent(effect.localHitRate) })
}

function Move({ by }: { readonly by: number | undefined }) {
  if (by === undefined || by === 0) return <span class="move" />
  return (
    <span class={by > 0 ? 'move up' : 'move down'} title={t('in the last 10 s')}>
      {by > 0 ? `▲${by}` : `▼${-by}`}
    </span>
  )
}
