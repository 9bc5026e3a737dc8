import type { FunctionComponent } from 'preact'
import { ConsistencyPage } from '../consistency/consistency-page.tsx'
import { isSignInWanted } from '../data/access.ts'
import { link, overview } from '../data/live.ts'
import { HistoryPage } from '../history/history-page.tsx'
import { HostsPage } from '../hosts/hosts-page.tsx'
import { KeyPage } from '../keys/key-page.tsx'
import { NowPage } from '../overview/now-page.tsx'
import { RulesPage } from '../rules/rules-page.tsx'
import { FindingsPage } from '../services/findings-page.tsx'
import { IdsPage } from '../services/ids-page.tsx'
import { LimitsPage } from '../services/limits-page.tsx'
import { LocksPage } from '../services/locks-page.tsx'
import { SlotsPage } from '../slots/slots-page.tsx'
import { KillSwitch } from './kill-switch.tsx'
import { LostHub } from './lost-hub.tsx'
import { route } from './route.ts'
import { SignIn } from './sign-in.tsx'
import { SignOut } from './sign-out.tsx'

interface PageLink {
  readonly name: string
  readonly title: string
  readonly Page: FunctionComponent
}

const pages: readonly PageLink[] = [
  { name: 'now', title: 'Now', Page: NowPage },
  { name: 'rules', title: 'Rules', Page: RulesPage },
  { name: 'hosts', title: 'Hosts', Page: HostsPage },
  { name: 'history', title: 'History', Page: HistoryPage },
  { name: 'consistency', title: 'Consistency', Page: ConsistencyPage },
  { name: 'slots', title: 'Slots', Page: SlotsPage },
  { name: 'findings', title: 'Findings', Page: FindingsPage },
  { name: 'limits', title: 'Limits', Page: LimitsPage },
  { name: 'locks', title: 'Locks', Page: LocksPage },
  { name: 'ids', title: 'Ids', Page: IdsPage },
]

/** The frame around every page: name, navigation, the link to the hub, the kill switch. */
export function Shell() {
  const { page } = route.value
  const Page = page === 'key' ? KeyPage : (pages.find(({ name }) => name === page) ?? pages[0]!).Page
  return (
    <>
      <header>
        <a class="brand" href="#/now">
          <img src="./icon.svg" alt="" width="26" height="26" /> Firebreak
        </a>
        <nav aria-label="Pages">
          {pages.map(({ name, title }) => (
            <a key={name} href={`#/${name}`} aria-current={page === name ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <span class="spacer" />
        <span class={`link ${link.value}`} role="status">
          {isSignInWanted.value
            ? 'not signed in'
            : link.value === 'live'
              ? `live · ${overview.value?.hubId ?? ''}`
              : link.value === 'lost'
                ? 'no answer from the hub: figures are old'
                : 'connecting …'}
        </span>
        <SignOut />
        <KillSwitch />
      </header>
      <main class={link.value === 'lost' ? 'stale' : undefined}>
        {isSignInWanted.value ? (
          <SignIn />
        ) : (
          <>
            <LostHub />
            <Page />
          </>
        )}
      </main>
    </>
  )
}
