/**
 * The line of changes: every change of a rule or the switch has an id `<time>-<name>`, and the store keeps the newest hundred
 * in order. Version numbers alone cannot tell two stores apart that went different ways from one backup; their lines can.
 *
 * The law by which one of two lines wins: the one that holds the other's newest change is ahead of it. Where neither does,
 * the one with the later newest change wins, and where that is no later, the store's. A hub that writes its line into a store
 * that lost it changes nothing: such an entry is later than anything, and does not count. Rules of a file stand at time 0, so
 * that anything a person ever did is newer.
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
 * Whether a change is in a line, or was before the line was cut: a line only goes forward, so what is older than the
 * beginning of a full one has left it. Of hubs that keep no line a version says the same: a later one has the earlier in it.
 */
function holds(line: readonly string[], id: string): boolean {
  if (line.includes(id)) return true
  const [first = ''] = line
  const [versionOfId, versionOfFirst] = [versionOf(id), versionOf(first)]
  if (versionOfId !== undefined && versionOfFirst !== undefined) return versionOfFirst >= versionOfId
  return line.length >= maxLine && timeOf(first) > timeOf(id)
}

/** The version for which an entry stands where hubs of earlier versions kept no line. */
function versionOf(id: string): number | undefined {
  const version = /^1-v(\d+)$/.exec(id)?.[1]
  return version === undefined ? undefined : Number(version)
}

/** The name of the entry that a hub makes when it writes its line into a store; no other begins like it. */
export const restoredName = 'restored.'

/** A line as it is written into a store that lost it: it follows our own and whatever stands there instead. */
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

/** Whether a line holds the change of a name. The script `change.lua` asks the same. */
export function hasMade(line: readonly string[], name: string): boolean {
  return line.some((id) => id.slice(id.indexOf('-') + 1) === name)
}

/** The changes that a line holds. */
const maxLine = 100

/** The line with one more change; undefined where it holds that change already. The script `change.lua` does the same. */
export function extendLine(line: readonly string[], at: number, name: string): readonly string[] | undefined {
  if (hasMade(line, name)) return undefined
  // Clocks of hubs differ; a line only goes forward.
  const time = Math.max(Math.floor(at), timeOf(headOf(line)) + 1)
  return [...line, `${time}-${name}`].slice(-maxLine)
}

/** The history of a store; one from earlier versions has none, and is placed by its version. */
export function readLine(text: string | undefined, rulesVersion: number, isOff: boolean): readonly string[] {
  const ids = (text ?? '').split(' ').filter((id) => id !== '')
  if (ids.length > 0 || (rulesVersion === 0 && !isOff)) return ids
  return [`1-v${rulesVersion}`]
}
