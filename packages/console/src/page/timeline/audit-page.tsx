import type { AuditEntry } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { Time } from '../format/time.tsx'
import { replaceWithUndo, ruleNow } from '../rules/replace-rule.ts'
import { Confirm } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { route, setQuery } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Diff } from './diff.tsx'
import { endingNow, hubNow, periodOf, RangeChoice } from './range.tsx'

/** Entries that are read again and again, and those that are when somebody looks for an older one. */
const fewEntries = 500
const mostEntries = 10_000

/** Who changed what, before → after, and the way back. */
export function AuditPage() {
  const { who = '', what = '', all } = route.value.query
  const limit = all === '1' ? mostEntries : fewEntries
  const { value, error, reload } = useLoaded<{ entries: AuditEntry[] }>(`/v1/audit?limit=${limit}`, 3000, 'audit')
  const [reverted, setReverted] = useState<AuditEntry>()
  const period = periodOf(hubNow(), '1d') ?? endingNow(hubNow(), '1d')
  const rows = value?.entries.filter(
    (entry) =>
      entry.at >= period.from &&
      entry.at < period.to + 60_000 &&
      entry.who.toLowerCase().includes(who.toLowerCase()) &&
      `${entry.what} ${JSON.stringify(entry.before)} ${JSON.stringify(entry.after)}`
        .toLowerCase()
        .includes(what.toLowerCase()),
  )
  const revert = async (entry: AuditEntry) => {
    await attempt(
      t('Reverted.'),
      () => revertEntry(entry),
      (undo) => undo().then(reload),
    )
    reload()
  }
  return (
    <section aria-label={t('Audit')}>
      <div class="card-head">
        <h1>{t('Audit')}</h1>
        <RangeChoice live="1d" />
      </div>
      <div class="fields">
        <label>
          {t('Person')}
          <input
            type="search"
            name="who"
            value={who}
            onInput={(event) => setQuery({ who: event.currentTarget.value })}
          />
        </label>
        <label>
          {t('Rule, key or words')}
          <input
            type="search"
            name="what"
            value={what}
            onInput={(event) => setQuery({ what: event.currentTarget.value })}
          />
        </label>
      </div>
      <RecordTable
        label={t('Audit')}
        rows={rows}
        error={error}
        id={(entry) => `${entry.at} ${entry.who} ${entry.what}`}
        empty={value?.entries.length === 0 ? t('Nobody has changed anything yet.') : t('No change matches the filter.')}
        columns={[
          { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
          { title: t('Person'), cell: (entry) => entry.who, isTight: true },
          { title: t('Change'), cell: (entry) => entry.what },
          { title: t('Before → after'), cell: ({ before, after }) => <Diff before={before} after={after} /> },
          {
            title: '',
            cell: (entry) =>
              canOperate.value &&
              isRevertible(entry) && (
                <button type="button" class="quiet" onClick={() => setReverted(entry)}>
                  {t('Revert')}
                </button>
              ),
            isTight: true,
          },
        ]}
      />
      {value?.entries.length === fewEntries && value.entries.at(-1)!.at >= period.from && (
        <p class="paging">
          {t('Only the newest {n} changes were searched.', { n: fewEntries })}
          <button type="button" onClick={() => setQuery({ all: '1' })}>
            {t('Search older ones')}
          </button>
        </p>
      )}
      {reverted !== undefined && (
        <Confirm
          title={t('Revert this change?')}
          text={t('{what}: this restores the previous version and replaces the current one.', {
            what: reverted.what,
          })}
          action={t('Revert')}
          onConfirm={() => void revert(reverted)}
          onClose={() => setReverted(undefined)}
        />
      )}
    </section>
  )
}

/** Rules and the switch go back; policies have their own versions, tokens and questions do not come back. */
function isRevertible({ before, after }: AuditEntry): boolean {
  return ruleIn(before) !== undefined || ruleIn(after) !== undefined || switchIn(before) !== undefined
}

/** Gives the way back. */
async function revertEntry({ before, after }: AuditEntry): Promise<() => Promise<unknown>> {
  const isOff = switchIn(before)
  if (isOff !== undefined) {
    await call('POST', '/v1/switch', { isOff })
    return () => call('POST', '/v1/switch', { isOff: !isOff })
  }
  const rule = ruleIn(before)
  const { id } = (rule ?? ruleIn(after))!
  return replaceWithUndo(id, await ruleNow(id), rule)
}

function ruleIn(value: unknown): { readonly id: string } | undefined {
  const { id, levels, pattern } = (value ?? {}) as Record<string, unknown>
  return typeof id === 'string' && Array.isArray(levels) && pattern !== undefined
    ? { ...(value as object), id }
    : undefined
}

function switchIn(value: unknown): boolean | undefined {
  const { isOff } = (value ?? {}) as { isOff?: unknown }
  return typeof isOff === 'boolean' ? isOff : undefined
}
