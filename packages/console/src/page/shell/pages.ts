import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { KeyPage } from '../keys/key-page.tsx'
import { KeysPage } from '../keys/keys-page.tsx'
import { OverviewPage } from '../overview/overview-page.tsx'

/** A page, where it stands, and the letter that opens it after `g`. */
export interface PageLink {
  readonly name: string
  /** English; shown through `t`. */
  readonly title: string
  readonly letter: string
  readonly group: 'Watch' | 'Decide' | 'Services' | 'Plane'
  /** The page, or its name among those that come after the first load. */
  readonly Page: FunctionComponent | keyof MorePages
}

export const pageGroups = ['Watch', 'Decide', 'Services', 'Plane'] as const

export const pages: readonly PageLink[] = [
  { name: 'overview', title: 'Overview', letter: 'o', group: 'Watch', Page: OverviewPage },
  { name: 'keys', title: 'Hot keys', letter: 'k', group: 'Watch', Page: KeysPage },
  { name: 'heat', title: 'Heat map', letter: 'h', group: 'Watch', Page: 'HeatMapPage' },
  { name: 'timeline', title: 'Timeline', letter: 't', group: 'Watch', Page: 'TimelinePage' },
  { name: 'reports', title: 'Reports', letter: 'p', group: 'Watch', Page: 'ReportsPage' },
  { name: 'rules', title: 'Rules', letter: 'r', group: 'Decide', Page: 'RulesPage' },
  { name: 'autopilot', title: 'Autopilot', letter: 'w', group: 'Decide', Page: 'AutopilotPage' },
  { name: 'alerts', title: 'Alerts', letter: 'a', group: 'Decide', Page: 'AlertsPage' },
  { name: 'audit', title: 'Audit', letter: 'u', group: 'Decide', Page: 'AuditPage' },
  { name: 'limits', title: 'Limits', letter: 'l', group: 'Services', Page: 'LimitsPage' },
  { name: 'locks', title: 'Locks', letter: 'c', group: 'Services', Page: 'LocksPage' },
  { name: 'ids', title: 'Ids', letter: 'i', group: 'Services', Page: 'IdsPage' },
  { name: 'sale', title: 'Sale', letter: 's', group: 'Services', Page: 'SalePage' },
  { name: 'finders', title: 'Big keys · Finders', letter: 'b', group: 'Plane', Page: 'FindersPage' },
  { name: 'fleet', title: 'Fleet', letter: 'f', group: 'Plane', Page: 'FleetPage' },
  { name: 'settings', title: 'Settings', letter: 'e', group: 'Plane', Page: 'SettingsPage' },
]

type MorePages = typeof import('./more-pages.ts')

const morePages = signal<MorePages | undefined>(undefined)

/** Why the other pages did not come, if they did not. */
export const morePagesProblem = signal<string | undefined>(undefined)

/** What most visits begin with comes first; the other pages follow at once, so that they are there when the hub is not. */
export async function loadMorePages(): Promise<void> {
  try {
    morePages.value = await import('./more-pages.ts')
    morePagesProblem.value = undefined
  } catch (error) {
    morePagesProblem.value = (error as Error).message
    setTimeout(() => void loadMorePages(), 2000)
  }
}

/** The page of a name; undefined while it is on its way. A key's page is in no menu, and an unknown name is the overview. */
export function pageOf(name: string): FunctionComponent | undefined {
  if (name === 'key') return KeyPage
  const { Page } = pages.find((page) => page.name === name) ?? pages[0]!
  return typeof Page === 'string' ? morePages.value?.[Page] : Page
}
