import type { HubView } from '@firebreak/core'
import type { HubApi } from './hub-api.ts'

/** The hub that answers, among those that share its store. */
export interface HubShare {
  readonly hubId: string
  /** All hubs, this one included. */
  readonly hubs: number
  /** Processes that report to the others. */
  readonly otherProcesses: number
}

/** Undefined if the hub has no others, or does not say. */
export async function hubShareOf(api: HubApi): Promise<HubShare | undefined> {
  // Not worth an error: what was asked for has been answered.
  const { hubs = [] } = await api.call<{ hubs?: readonly HubView[] }>('GET', '/v1/hubs').catch(() => ({ hubs: [] }))
  const own = hubs.find(({ isThis }) => isThis)
  if (own === undefined || hubs.length < 2) return undefined
  const otherProcesses = hubs.reduce((sum, { isThis, processes }) => sum + (isThis ? 0 : processes), 0)
  return { hubId: own.hubId, hubs: hubs.length, otherProcesses }
}

/** A number of processes in words. */
export function processesText(count: number): string {
  return count === 1 ? '1 process reports' : `${count} processes report`
}
