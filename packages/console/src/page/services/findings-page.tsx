import { useLoaded } from '../data/loaded.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { bytes, count, timeOfDay } from '../format/format.ts'
import { RecordTable } from './record-table.tsx'

interface FoundKey {
  readonly key: string
  readonly type?: string
  readonly bytes?: number
  readonly elements?: number
  readonly accessesPerSecond?: number
  readonly node?: string
}

interface Finding {
  readonly id: string
  readonly kind: string
  readonly method: string
  readonly startedAtMs: number
  readonly source: readonly string[]
  readonly isComplete: boolean
  readonly scanned: number
  readonly keys: readonly FoundKey[]
  readonly notes: readonly string[]
}

/** What `firebreak find --hub` sent. */
export function FindingsPage() {
  const { value, error } = useLoaded<{ findings: Finding[] }>('/v1/findings', 5000)
  if (error !== undefined) return <p class="problem">{error}</p>
  if (value?.findings.length === 0) {
    return (
      <section>
        <p class="empty">
          Nothing yet. Look for hot and big keys with <code>firebreak find big --scan --hub {location.origin}</code>
        </p>
      </section>
    )
  }
  return (
    <>
      {value?.findings.map((finding) => (
        <section key={finding.id}>
          <h2>
            {timeOfDay(finding.startedAtMs)} · {finding.kind} keys by {finding.method} on {finding.source.join(', ')} ·{' '}
            {count(finding.scanned)} looked at
            {finding.isComplete ? '' : ' (ended early)'}
          </h2>
          <RecordTable
            rows={finding.keys.slice(0, 20)}
            empty="No key was found."
            columns={[
              { title: 'Key', text: (key) => cutMiddle(key.key) },
              { title: 'Type', text: (key) => key.type ?? '' },
              { title: 'Bytes', text: (key) => (key.bytes === undefined ? '' : bytes(key.bytes)), isNumber: true },
              {
                title: 'Elements',
                text: (key) => (key.elements === undefined ? '' : count(key.elements)),
                isNumber: true,
              },
              {
                title: 'A second',
                text: (key) => (key.accessesPerSecond === undefined ? '' : count(key.accessesPerSecond)),
                isNumber: true,
              },
            ]}
          />
          {finding.notes.map((note) => (
            <p key={note} class="empty">
              {note}
            </p>
          ))}
        </section>
      ))}
    </>
  )
}
