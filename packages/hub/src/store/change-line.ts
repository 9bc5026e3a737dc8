/**
 * The line of changes: every change of a rule or the switch has an id `<time>-<name>`, and the store keeps the newest
 * hundred in order. Version numbers alone cannot distinguish two stores that diverged from one backup; their lines can.
 *
 * Which of two lines wins: one that contains the other's newest change is ahead of it. If neither does, the one with
 * the later newest change wins; on a tie, the store's. An entry that a hub adds when it rewrites its line into a store
 * that lost it is not a change: it would be later than anything, so it does not count. Rules from a file have time 0,
 * so that anything a user ever did is newer.
 */
export type LineRelation = 'same' | 'ahead' | 'behind' | 'newer' | 'older'

/** The position of the store's history relative to ours. */
export function compareLines(own: readonly string[], stored: readonly string[]): LineRelation {
  const [ownHead, storedHead] = [headOf(own), headOf(stored)]
  if (ownHead === storedHead) return 'same'
  if (ownHead === '' || holds(stored, ownHead)) return 'ahead'
  if (storedHead === '' || holds(own, storedHead)) return 'behind'
  return timeOf(newestChange(own)) > timeOf(newestChange(stored)) ? 'older' : 'newer'
}

/**
 * Whether a change is in a line, or was before the line was cut: a line only moves forward, so anything older than the
 * start of a full one has left it. For hubs without a line, the version serves: a later one includes the earlier.
 */
function holds(line: readonly string[], id: string): boolean {
  if (line.includes(id)) return true
  const [first = ''] = line
  const [versionOfId, versionOfFirst] = [versionOf(id), versionOf(first)]
  if (versionOfId !== undefined && versionOfFirst !== undefined) return versionOfFirst >= versionOfId
  return line.length >= maxLine && timeOf(first) > timeOf(id)
}

/** The version that an entry stands for if hubs of earlier versions kept no line. */
function versionOf(id: string): number | undefined {
  const version = /^1-v(\d+)$/.exec(id)?.[1]
  return version === undefined ? undefined : Number(version)
}

/** The name of the entry that a hub adds when it rewrites its line into a store; no other begins like it. */
const restoredName = 'restored.'

/** A line as rewritten into a store that lost it: it follows our own and whatever is there instead. */
export function restoredLine(own: readonly string[], instead: string, at: number, id: string): readonly string[] {
  const time = Math.max(Math.floor(at), timeOf(headOf(own)) + 1, timeOf(instead) + 1)
  return [...own, ...(instead === '' ? [] : [instead]), `${time}-${restoredName}${id}`].slice(-maxLine)
}

function newestChange(line: readonly string[]): string {
  return line.findLast((id) => !id.startsWith(restoredName, id.indexOf('-') + 1)) ?? ''
}

export function headOf(line: readonly string[]): string {
  return line.at(-1) ?? ''
}

export function timeOf(id: string): number {
  return Number(/^\d+/.exec(id)?.[0] ?? 0)
}

/** Whether a line contains the change of a name. The script `change.lua` asks the same. */
export function hasMade(line: readonly string[], name: string): boolean {
  return line.some((id) => id.slice(id.indexOf('-') + 1) === name)
}

/** Number of changes in a line. */
const maxLine = 100

/**
 * The line with one more change; undefined if it already contains that change. The script `change.lua` does the same.
 */
export function extendLine(line: readonly string[], at: number, name: string): readonly string[] | undefined {
  if (hasMade(line, name)) return undefined
  // Hubs' clocks differ, but a line only moves forward.
  const time = Math.max(Math.floor(at), timeOf(headOf(line)) + 1)
  return [...line, `${time}-${name}`].slice(-maxLine)
}

/** The line of a store; a store of an earlier version has none, and is placed by its version. */
export function readLine(text: string | undefined, rulesVersion: number, isOff: boolean): readonly string[] {
  const ids = (text ?? '').split(' ').filter((id) => id !== '')
  if (ids.length > 0 || (rulesVersion === 0 && !isOff)) return ids
  return [`1-v${rulesVersion}`]
}
