import { useLoaded } from '../data/loaded.ts'
import { RecordTable } from './record-table.tsx'

type LimitRule = Readonly<Record<string, unknown>>

/** The rules of the rate-limit service in force, with their counters. */
export function LimitsPage() {
  const { value, error } = useLoaded<{ Version: number; rules: LimitRule[] }>('/v1/limits/rules')
  const columns = Object.keys(value?.rules[0] ?? {}).map((name) => ({
    title: name,
    text: (rule: LimitRule) => (typeof rule[name] === 'object' ? JSON.stringify(rule[name]) : String(rule[name] ?? '')),
  }))
  return (
    <section>
      <h2>Rate-limit rules, version {value?.Version ?? '…'}</h2>
      <RecordTable
        rows={value?.rules}
        error={error}
        columns={columns}
        empty="No policy is loaded: POST one to /v1/limits/policy, or start the hub with a policy file."
      />
    </section>
  )
}
