import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { PrewarmJob } from './prewarm-job.ts'

const id = 'prewarm-unreached'

/** Raises an alarm while pre-warmed keys reach no service. */
export function tellUnreached(alarms: Pick<AlarmBoard, 'raise' | 'clear'>, jobs: readonly PrewarmJob[]): void {
  const [first] = jobs
  if (first === undefined) {
    alarms.clear(id)
    return
  }
  const others = jobs.length > 1 ? ` and those of ${jobs.length - 1} more jobs` : ''
  const until = new Date(first.at + first.forMs).toISOString()
  alarms.raise({
    id,
    severity: 'warning',
    cause: `${first.keys.length} keys (${first.keys[0]} …)${others} are pre-warmed, but no service that could use them is connected`,
    retry: `services that connect until ${until} get them`,
  })
}
