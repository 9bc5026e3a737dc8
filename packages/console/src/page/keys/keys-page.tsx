import { type KeyDetail, type KeyGroupView, type KeyView, readableKey } from '@firebreak/core'
import { useEffect, useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { isPaused } from '../data/pause.ts'
import { count, percent, rate } from '../format/format.ts'
import { notify } from '../shell/notices.tsx'
import { addressOf, route, setQuery } from '../shell/route.ts'
import { download, toCsv } from '../table/export.ts'
import { Paging, pageIn } from '../table/paging.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { KeyTable } from './key-table.tsx'
import { RuleFromKey } from './rule-from-key.tsx'

const pageSize = 50
const maxPins = 10
/** What the list is narrowed by, beside state and text. */
const narrowing = ['cluster', 'service', 'rule', 'strategy', 'handling'] as const
const strategies = ['LocalCache', 'RedundantKeys', 'RateLimit', 'Combine', 'Observe'] as const
const handlings = ['handled', 'observed', 'unhandled'] as const

interface KeysAnswer {
  readonly keys: readonly KeyView[]
  readonly total: number
}

/** Which keys are hot, how hot, and why. */
export function KeysPage() {
  const { query } = route.value
  const { filter = '', state = '', sort = 'heat', by = '' } = query
  const page = pageIn(query['page'])
  const wanted = new URLSearchParams({
    ...(filter !== '' && { match: filter }),
    ...(state !== '' && { state }),
    ...(query['group'] !== undefined && { group: query['group'] }),
    ...Object.fromEntries(narrowing.flatMap((name) => (query[name] ? [[name, query[name]]] : []))),
  })
  const offset = page * pageSize
  const path = `/v1/keys?limit=${pageSize}&offset=${offset}&sort=${sort}&${wanted}`
  const exported = async (format: 'csv' | 'json') => {
    try {
      const { saved, total } = await exportKeys(format, wanted, sort)
      if (saved < total)
        notify({ text: t('Saved the first {n} of {total} keys.', { n: count(saved), total: count(total) }) })
    } catch (error) {
      notify({ text: (error as Error).message, isProblem: true })
    }
  }
  const { value, error } = useLoaded<KeysAnswer>(by === 'prefix' ? '' : path, 1000)
  return (
    <>
      <section aria-label={t('Filter')}>
        <div class="card-head">
          <h1>{t('Hot keys')}</h1>
          <span class="tools">
            <button type="button" onClick={() => void exported('csv')}>
              CSV
            </button>
            <button type="button" onClick={() => void exported('json')}>
              JSON
            </button>
          </span>
        </div>
        <FilterFields />
      </section>
      <Pins />
      {by === 'prefix' ? (
        <Groups wanted={wanted} />
      ) : (
        <section aria-label={t('Keys')}>
          {error !== undefined && <p class="problem">{error}</p>}
          {value !== undefined && (
            <>
              <KeyTable
                keys={value.keys}
                empty={emptyText(wanted.size > 0)}
                lead={(key) => <Pin of={key} />}
                tail={({ redisClusterId, key, ratePerSecond }) =>
                  canOperate.value && (
                    <RuleFromKey redisClusterId={redisClusterId} text={key} ratePerSecond={ratePerSecond} />
                  )
                }
                heading={(column, title) => <SortButton column={column} title={title} sort={sort} />}
              />
              <Paging
                name="page"
                page={page}
                size={pageSize}
                total={value.total}
                alone={t('{n} keys', { n: count(value.total) })}
              />
            </>
          )}
        </section>
      )}
    </>
  )
}

/** Why the list is empty decides what to do about it. */
function emptyText(isFiltered: boolean): string {
  if (isFiltered) return t('No key matches the filter.')
  if (overview.value?.sensors.hosts === 0) return t('No sensor is reporting: connect a service first (see Overview).')
  return t('Services are connected, but none has touched a key in the last minute.')
}

function FilterFields() {
  const { filter = '', state = '', by = '', group = '', cluster = '' } = route.value.query
  const clusters = [...new Set(overview.value?.keys.map(({ redisClusterId }) => redisClusterId))].sort()
  return (
    <div class="fields">
      <label>
        {t('Part of the key')}
        <input
          type="search"
          name="filter"
          value={filter}
          onInput={(event) => setQuery({ filter: event.currentTarget.value, page: '' })}
        />
      </label>
      <label>
        {t('State')}
        <select
          name="state"
          value={state}
          onChange={(event) => setQuery({ state: event.currentTarget.value, page: '' })}
        >
          <option value="">{t('all')}</option>
          {['hot', 'warming', 'cooling', 'cold'].map((one) => (
            <option key={one} value={one}>
              {t(one)}
            </option>
          ))}
        </select>
      </label>
      <Choice name="handling" title={t('Handling')} choices={handlings.map((one) => [one, t(handlingTitles[one])])} />
      <Choice name="strategy" title={t('Strategy')} choices={strategies.map((one) => [one, one])} />
      {(clusters.length > 1 || cluster !== '') && (
        <Choice name="cluster" title={t('Cluster')} choices={clusters.map((one) => [one, one])} />
      )}
      {(['service', 'rule'] as const).map((name) => (
        <label key={name}>
          {name === 'service' ? t('Service') : t('Rule')}
          <input
            type="search"
            name={name}
            size={12}
            value={route.value.query[name] ?? ''}
            onChange={(event) => setQuery({ [name]: event.currentTarget.value, page: '' })}
          />
        </label>
      ))}
      <label class="check">
        <input
          type="checkbox"
          name="by"
          checked={by === 'prefix'}
          onChange={(event) => setQuery({ by: event.currentTarget.checked ? 'prefix' : '' })}
        />
        {t('group by prefix')}
      </label>
      {group !== '' && (
        <button type="button" class="chip" onClick={() => setQuery({ group: '', page: '' })}>
          {t('prefix {group}', { group })} ✕
        </button>
      )}
    </div>
  )
}

const handlingTitles = { handled: 'handled', observed: 'only observed', unhandled: 'not handled' } as const

interface ChoiceProps {
  /** The setting of the address. */
  readonly name: string
  readonly title: string
  readonly choices: readonly (readonly [value: string, title: string])[]
}

function Choice({ name, title, choices }: ChoiceProps) {
  return (
    <label>
      {title}
      <select
        name={name}
        value={route.value.query[name] ?? ''}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value, page: '' })}
      >
        <option value="">{t('all')}</option>
        {choices.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

function SortButton(props: { readonly column: string; readonly title: string; readonly sort: string }) {
  const { column, title, sort } = props
  const isOn = sort === column
  return (
    <button
      type="button"
      class="sort"
      aria-pressed={isOn}
      onClick={() => setQuery({ sort: isOn ? '' : column, page: '' })}
    >
      {title}
      {isOn && ' ↓'}
    </button>
  )
}

/** Keys that stay on top; their names are in the address. */
function pinned(): string[] {
  const text = route.value.query['pin'] ?? ''
  return text === '' ? [] : text.split(' ')
}

function pinOf({ redisClusterId, key }: Pick<KeyView, 'redisClusterId' | 'key'>): string {
  return `${encodeURIComponent(redisClusterId)}/${encodeURIComponent(key)}`
}

function Pin({ of: key }: { readonly of: KeyView }) {
  const pins = pinned()
  const pin = pinOf(key)
  const isOn = pins.includes(pin)
  const next = isOn ? pins.filter((one) => one !== pin) : [...pins, pin].slice(-maxPins)
  return (
    <button
      type="button"
      class={isOn ? 'pin is-on' : 'pin'}
      aria-pressed={isOn}
      aria-label={t('Pin {key}', { key: readableKey(key.key) })}
      onClick={() => setQuery({ pin: next.join(' ') })}
    >
      {isOn ? '★' : '☆'}
    </button>
  )
}

function Pins() {
  const pins = pinned()
  const wanted = pins.join(' ')
  const [keys, setKeys] = useState<readonly KeyView[]>([])
  useEffect(() => {
    let isWanted = true
    let isReading = false
    const read = async () => {
      if (isReading || isPaused.value) return
      isReading = true
      const found = await Promise.allSettled(
        (wanted === '' ? [] : wanted.split(' ')).map((pin) => call<KeyDetail>('GET', `/v1/keys/${pin}`)),
      )
      isReading = false
      if (isWanted) setKeys(found.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])))
    }
    void read()
    const timer = setInterval(() => void read(), 1000)
    return () => {
      isWanted = false
      clearInterval(timer)
    }
  }, [wanted])
  if (pins.length === 0) return null
  return (
    <section aria-label={t('Pinned')}>
      <h2>{t('Pinned')}</h2>
      <KeyTable keys={keys} lead={(key) => <Pin of={key} />} empty={t('None of the pinned keys is in use now.')} />
    </section>
  )
}

function Groups({ wanted }: { readonly wanted: URLSearchParams }) {
  const { value, error } = useLoaded<{ groups: KeyGroupView[] }>(`/v1/key-groups?${wanted}`, 1000)
  const top = value?.groups[0]?.ratePerSecond ?? 1
  return (
    <section aria-label={t('Prefixes')}>
      <RecordTable
        label={t('Prefixes')}
        rows={value?.groups}
        error={error}
        id={({ group }) => group}
        empty={emptyText(wanted.size > 0)}
        columns={[
          {
            title: t('Prefix'),
            cell: ({ group }) => (
              <a href={addressOf({ page: 'keys', parts: [], query: { ...route.value.query, by: '', group } })}>
                <code>{group}</code>
              </a>
            ),
          },
          { title: t('Keys'), cell: ({ keys }) => count(keys), isNumber: true },
          { title: t('Hot'), cell: ({ hot }) => count(hot), isNumber: true },
          { title: t('Rate'), cell: ({ ratePerSecond }) => rate(ratePerSecond), isNumber: true },
          { title: t('Writes'), cell: ({ writesPerSecond }) => rate(writesPerSecond), isNumber: true, isMinor: true },
          { title: t('Share'), cell: ({ share }) => percent(share), isNumber: true },
          {
            title: t('Of the busiest'),
            cell: ({ ratePerSecond }) => <progress max={top} value={ratePerSecond} aria-label={rate(ratePerSecond)} />,
            isMinor: true,
          },
        ]}
      />
    </section>
  )
}

const exportedKeys = 1000

/** The keys of the filter, not only those of this page. */
async function exportKeys(format: 'csv' | 'json', wanted: URLSearchParams, sort: string) {
  const { keys, total } = await call<KeysAnswer>('GET', `/v1/keys?limit=${exportedKeys}&sort=${sort}&${wanted}`)
  const done = { saved: keys.length, total }
  if (format === 'json') {
    download('hot-keys.json', 'application/json', JSON.stringify(keys, null, 2))
    return done
  }
  const columns = [
    'cluster',
    'key',
    'state',
    'rate',
    'rate 10 s',
    'rate 1 min',
    'share',
    'reads',
    'writes',
    'bytes',
    'error',
    'services',
    'rule',
    'strategy',
    'reason',
  ]
  const rows = keys.map((key) => [
    key.redisClusterId,
    readableKey(key.key),
    key.state,
    key.ratePerSecond,
    Math.round(key.rates?.tenSeconds ?? 0),
    Math.round(key.rates?.minute ?? 0),
    key.share,
    Math.max(0, key.ratePerSecond - key.writesPerSecond),
    key.writesPerSecond,
    key.bytesPerSecond,
    key.errorPerSecond,
    key.services?.join(' ') ?? '',
    key.ruleId ?? '',
    key.strategy?.strategy ?? '',
    key.reason,
  ])
  download('hot-keys.csv', 'text/csv', toCsv(columns, rows))
  return done
}
