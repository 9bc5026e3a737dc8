import { useLoaded } from '../data/loaded.ts'
import { count } from '../format/format.ts'
import { RecordTable } from './record-table.tsx'

interface IdsStatus {
  readonly given: number
  readonly snowflake?: { readonly state: string; readonly workerId: number }
}

interface Buffer {
  readonly tag: string
  readonly store: string
  readonly next: string
  readonly left: number
  readonly ready: number
  readonly step: number
  readonly isLoading: boolean
  readonly waiting: number
  readonly error?: string
}

interface Database {
  readonly name: string
  readonly isUp: boolean
  readonly error?: string
  readonly rows: readonly { readonly tag?: string; readonly maxId: string; readonly step: number }[]
}

/** Buffers of segment ids, their databases, and the snowflake worker. */
export function IdsPage() {
  const status = useLoaded<IdsStatus>('/api/ids/status')
  const buffers = useLoaded<Buffer[]>('/api/ids/buffers')
  const databases = useLoaded<Database[]>('/api/ids/databases')
  const snowflake = status.value?.snowflake
  return (
    <>
      <section>
        <h2>Ids</h2>
        <p>
          {count(status.value?.given ?? 0)} given.{' '}
          {snowflake ? `Snowflakes: worker ${snowflake.workerId}, ${snowflake.state}.` : 'No snowflakes here.'}
        </p>
      </section>
      <section>
        <h2>Segment buffers</h2>
        <RecordTable
          rows={buffers.value}
          error={buffers.error}
          empty="No tag has been asked for."
          columns={[
            { title: 'Tag', text: (buffer) => buffer.tag },
            { title: 'Database', text: (buffer) => buffer.store },
            { title: 'Next id', text: (buffer) => buffer.next, isNumber: true },
            { title: 'Left', text: (buffer) => count(buffer.left), isNumber: true },
            { title: 'Ready', text: (buffer) => count(buffer.ready), isNumber: true },
            { title: 'Step', text: (buffer) => count(buffer.step), isNumber: true },
            { title: 'State', text: (buffer) => buffer.error ?? (buffer.isLoading ? 'loading' : 'serving') },
          ]}
        />
      </section>
      <section>
        <h2>Databases</h2>
        <RecordTable
          rows={databases.value}
          error={databases.error}
          empty="No database."
          columns={[
            { title: 'Database', text: (database) => database.name },
            { title: 'State', text: (database) => (database.isUp ? 'up' : (database.error ?? 'down')) },
            { title: 'Tags', text: (database) => count(database.rows.length), isNumber: true },
          ]}
        />
      </section>
    </>
  )
}
