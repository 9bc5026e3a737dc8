import type { AlarmView, RuleStalenessView, WatcherView } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { ago, count, milliseconds } from '../format/format.ts'
import { RecordTable } from '../services/record-table.tsx'

/** Whether what is served from memory is right: what is broken, who watches for changes, and how old values were seen. */
export function ConsistencyPage() {
  const alarms = useLoaded<{ alarms: AlarmView[] }>('/v1/alarms')
  const watchers = useLoaded<{ watchers: WatcherView[] }>('/v1/watchers')
  const staleness = useLoaded<{ rules: RuleStalenessView[] }>('/v1/staleness')
  const now = overview.value?.hubTime ?? Date.now()
  return (
    <>
      <section aria-label="Alarms">
        <h2>What is broken now</h2>
        <RecordTable
          rows={alarms.value?.alarms}
          error={alarms.error}
          empty="Nothing is broken."
          columns={[
            { title: 'Alarm', text: (alarm) => alarm.id },
            { title: 'Cause', text: (alarm) => alarm.cause },
            { title: 'What is tried', text: (alarm) => alarm.retry },
            { title: 'Times', text: (alarm) => count(alarm.count), isNumber: true },
            { title: 'Since', text: (alarm) => `${ago(alarm.since, now)} ago` },
          ]}
        />
      </section>
      <section aria-label="Staleness">
        <h2>How old values from memory were seen to be</h2>
        <RecordTable
          rows={staleness.value?.rules}
          error={staleness.error}
          empty="No value was compared yet: processes compare one of theirs with Redis every few seconds."
          columns={[
            { title: 'Rule', text: (rule) => rule.ruleId },
            { title: 'Compared', text: (rule) => count(rule.observations), isNumber: true },
            { title: 'p50', text: (rule) => milliseconds(rule.p50Ms), isNumber: true },
            { title: 'p99', text: (rule) => milliseconds(rule.p99Ms), isNumber: true },
            { title: 'Worst', text: (rule) => milliseconds(rule.maxMs), isNumber: true },
            {
              title: 'Allowed',
              text: ({ maxStalenessMs }) => (maxStalenessMs === null ? 'by its watcher' : milliseconds(maxStalenessMs)),
              isNumber: true,
            },
            { title: 'Last', text: (rule) => `${ago(rule.lastAt, now)} ago` },
          ]}
        />
      </section>
      <section aria-label="Sources of changes">
        <h2>Sources of changes that this hub reads</h2>
        <RecordTable
          rows={watchers.value?.watchers}
          error={watchers.error}
          empty="None: the processes watch their keys themselves, see Hosts."
          columns={[
            { title: 'Source', text: (watcher) => watcher.name },
            { title: 'Kind', text: (watcher) => watcher.kind },
            { title: 'Redis', text: (watcher) => watcher.redisClusterId },
            { title: 'State', text: ({ state, detail }) => (detail === '' ? state : `${state} (${detail})`) },
            {
              title: 'Counts',
              text: ({ counts }) =>
                Object.entries(counts)
                  .map(([name, value]) => `${name} ${count(value)}`)
                  .join(', '),
            },
          ]}
        />
      </section>
    </>
  )
}
