import type { FunctionComponent } from 'preact'
import { AlertsPage } from '../alerts/alerts-page.tsx'
import { AutopilotPage } from '../autopilot/autopilot-page.tsx'
import { FindersPage } from '../finders/finders-page.tsx'
import { FleetPage } from '../fleet/fleet-page.tsx'
import { HeatMapPage } from '../heat-map/heat-map-page.tsx'
import { KeyPage } from '../keys/key-page.tsx'
import { KeysPage } from '../keys/keys-page.tsx'
import { OverviewPage } from '../overview/overview-page.tsx'
import { ReportsPage } from '../reports/reports-page.tsx'
import { RulesPage } from '../rules/rules-page.tsx'
import { IdsPage } from '../services/ids-page.tsx'
import { LimitsPage } from '../services/limits-page.tsx'
import { LocksPage } from '../services/locks-page.tsx'
import { SalePage } from '../services/sale-page.tsx'
import { SettingsPage } from '../settings/settings-page.tsx'
import { AuditPage } from '../timeline/audit-page.tsx'
import { TimelinePage } from '../timeline/timeline-page.tsx'

/** A page, where it stands, and the letter that opens it after `g`. */
export interface PageLink {
  readonly name: string
  /** English; shown through `t`. */
  readonly title: string
  readonly letter: string
  readonly group: 'Watch' | 'Decide' | 'Services' | 'Plane'
  readonly Page: FunctionComponent
}

export const pageGroups = ['Watch', 'Decide', 'Services', 'Plane'] as const

export const pages: readonly PageLink[] = [
  { name: 'overview', title: 'Overview', letter: 'o', group: 'Watch', Page: OverviewPage },
  { name: 'keys', title: 'Hot keys', letter: 'k', group: 'Watch', Page: KeysPage },
  { name: 'heat', title: 'Heat map', letter: 'h', group: 'Watch', Page: HeatMapPage },
  { name: 'timeline', title: 'Timeline', letter: 't', group: 'Watch', Page: TimelinePage },
  { name: 'reports', title: 'Reports', letter: 'p', group: 'Watch', Page: ReportsPage },
  { name: 'rules', title: 'Rules', letter: 'r', group: 'Decide', Page: RulesPage },
  { name: 'autopilot', title: 'Autopilot', letter: 'w', group: 'Decide', Page: AutopilotPage },
  { name: 'alerts', title: 'Alerts', letter: 'a', group: 'Decide', Page: AlertsPage },
  { name: 'audit', title: 'Audit', letter: 'u', group: 'Decide', Page: AuditPage },
  { name: 'limits', title: 'Limits', letter: 'l', group: 'Services', Page: LimitsPage },
  { name: 'locks', title: 'Locks', letter: 'c', group: 'Services', Page: LocksPage },
  { name: 'ids', title: 'Ids', letter: 'i', group: 'Services', Page: IdsPage },
  { name: 'sale', title: 'Sale', letter: 's', group: 'Services', Page: SalePage },
  { name: 'finders', title: 'Big keys · Finders', letter: 'b', group: 'Plane', Page: FindersPage },
  { name: 'fleet', title: 'Fleet', letter: 'f', group: 'Plane', Page: FleetPage },
  { name: 'settings', title: 'Settings', letter: 'e', group: 'Plane', Page: SettingsPage },
]

/** The page of a name; a key's page is in no menu, and a name that is unknown is the overview. */
export function pageOf(name: string): FunctionComponent {
  return name === 'key' ? KeyPage : (pages.find((page) => page.name === name) ?? pages[0]!).Page
}
