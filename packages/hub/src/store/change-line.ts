/**
 * The line of changes: every change of a rule or the switch has an id `<time>-<name>`, and the store keeps the newest hundred
 * in order. Version numbers alone cannot tell two stores apart that went different ways from one backup; their lines can.
 *
 * The law by which one of two lines wins: the one that holds the other's newest change is ahead of it. Where neither does,
 * the one with the later newest change wins, and where that is no later, the store's. Rules of a file stand at time 0, so
 * that anything a person ever did is newer.
 */
export type LineRelation = 'same' | 'ahead' | 'behind' | 'newer' | 'older'

/** Where the store's line stands, seen from ours. */
export function compareLines(own: readonly string[], stored: readonly string[]): LineRelation {
  const [ownHead, storedHead] = [headOf(own), headOf(stored)]
  if (ownHead === storedHead) return 'same'
  if (ownHead === '' || stored.includes(ownHead)) return 'ahead'
  if (storedHead === '' || own.includes(storedHead)) return 'behind'
  return timeOf(ownHead) > timeOf(storedHead) ? 'older' : 'newer'
}

export function headOf(line: readonly string[]): string {
  return line.at(-1) ?? ''
}

export function timeOf(id: string): number {
  return Number(/^\d+/.exec(id)?.[0] ?? 0)
}

/** The changes that a line holds. */
const maxLine = 100

/** The line with one more change; undefined where it holds that change already. The script `change.lua` does the same. */
export function extendLine(line: readonly string[], at: number, name: string): readonly string[] | undefined {
  if (line.some((id) => id.slice(id.indexOf('-') + 1) === name)) return undefined
  // Clocks of hubs differ; a line only goes forward.
  const time = Math.max(Math.floor(at), timeOf(headOf(line)) + 1)
  return [...line, `${time}-${name}`].slice(-maxLine)
}

/** The line of a store; one that earlier versions wrote has none, and stands where its version says. */
export function readLine(text: string | undefined, rulesVersion: number, isOff: boolean): readonly string[] {
  const ids = (text ?? '').split(' ').filter((id) => id !== '')
  if (ids.length > 0 || (rulesVersion === 0 && !isOff)) return ids
  return [`1-v${rulesVersion}`]
}
