import type { RulesVersionView } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { Time } from '../format/time.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { Diff } from '../timeline/diff.tsx'

interface VersionsAnswer {
  readonly versions: readonly RulesVersionView[]
  readonly version: number
  readonly sensors: { readonly total: number; readonly current: number }
}

const shownVersions = 20

/** Every change of the rules, what it changed, and the way back; and how many sensors have the newest. */
export function RuleVersions({ onChange }: { readonly onChange: () => void }) {
  const { value, error, reload } = useLoaded<VersionsAnswer>('/v1/rules/versions', 3000)
  const [wanted, setWanted] = useState<number>()
  const rollBack = async (version: number) => {
    const before = value?.version
    await attempt(
      t('Rules are as in version {n} again.', { n: version }),
      () => call('POST', '/v1/rules/rollback', { version }),
      before === undefined ? undefined : () => call('POST', '/v1/rules/rollback', { version: before }),
    )
    reload()
    onChange()
  }
  return (
    <section aria-label={t('Versions')}>
      <div class="card-head">
        <h2>{value === undefined ? t('Versions') : t('Versions, now {n}', { n: value.version })}</h2>
        {value !== undefined && (
          <span class="muted">{t('{current} of {total} sensors have the newest table', value.sensors)}</span>
        )}
      </div>
      <RecordTable
        label={t('Versions')}
        rows={value?.versions.slice(0, shownVersions)}
        error={error}
        id={({ version }) => String(version)}
        empty={t('No change yet.')}
        columns={[
          { title: t('Version'), cell: ({ version }) => version, isNumber: true, isTight: true },
          { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
          { title: t('Person'), cell: ({ who }) => who, isTight: true },
          { title: t('Rule'), cell: ({ ruleId }) => <code>{ruleId}</code>, isTight: true },
          { title: t('Before → after'), cell: ({ before, after }) => <Diff before={before} after={after} /> },
          {
            title: '',
            cell: ({ version }) =>
              canOperate.value &&
              version !== value?.version && (
                <button type="button" class="quiet" onClick={() => setWanted(version)}>
                  {t('Roll back')}
                </button>
              ),
            isTight: true,
          },
        ]}
      />
      {wanted !== undefined && (
        <Confirm
          title={t('Roll back to version {n}?', { n: wanted })}
          text={t('All rules return to their state after that change. This makes a new version.')}
          action={t('Roll back')}
          onConfirm={() => void rollBack(wanted)}
          onClose={() => setWanted(undefined)}
        />
      )}
    </section>
  )
}
