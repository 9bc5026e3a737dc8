import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { isSignInWanted } from '../data/access.ts'
import { heardAt, link, overview } from '../data/live.ts'
import { isPaused } from '../data/pause.ts'
import { timeOfDay } from '../format/format.ts'
import { t } from '../text/text.ts'
import { periodQuery } from '../timeline/range.tsx'
import { Help } from './help.tsx'
import { overlay } from './keyboard.ts'
import { KillSwitch } from './kill-switch.tsx'
import { LostHub } from './lost-hub.tsx'
import { Notices } from './notices.tsx'
import { morePagesProblem, pageGroups, pageOf, pages } from './pages.ts'
import { Palette } from './palette.tsx'
import { route } from './route.ts'
import { SignIn } from './sign-in.tsx'
import { SignOut } from './sign-out.tsx'

/** Pages that show a period keep it from one to the next: last night stays last night. */
function isOfPeriod(name: string): boolean {
  return name === 'overview' || name === 'heat' || name === 'timeline'
}

/** The frame around every page: name, navigation, the link to the hub, pause, the kill switch. */
export function Shell() {
  const { page, parts } = route.value
  const [isMenuOpen, setMenuOpen] = useState(false)
  useEffect(() => {
    setMenuOpen(false)
    const title = pages.find(({ name }) => name === page)?.title
    document.title = `${title === undefined ? (parts[1] ?? 'Firebreak') : t(title)} · Firebreak`
  }, [page, parts])
  const Page = pageOf(page)
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        {t('Skip to the page')}
      </button>
      <header class="side">
        <div class="side-head">
          <a class="brand" href="#/overview">
            <img src="./icon.svg" alt="" width="24" height="24" /> Firebreak
          </a>
          <button
            type="button"
            class="menu"
            aria-expanded={isMenuOpen}
            aria-controls="pages"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            {t('Menu')}
          </button>
        </div>
        <nav id="pages" class={isMenuOpen ? 'is-open' : undefined} aria-label={t('Pages')}>
          {pageGroups.map((group) => (
            <div key={group} class="nav-group">
              <p>{t(group)}</p>
              {pages
                .filter((link) => link.group === group)
                .map(({ name, title, letter }) => (
                  <a
                    key={name}
                    href={`#/${name}${isOfPeriod(name) ? periodQuery() : ''}`}
                    title={`g ${letter}`}
                    aria-current={page === name || (page === 'key' && name === 'keys') ? 'page' : undefined}
                  >
                    {t(title)}
                    {name === 'alerts' && <AlarmCount />}
                  </a>
                ))}
            </div>
          ))}
        </nav>
      </header>
      <div class="body">
        <aside class="bar" aria-label={t('Page')}>
          <button type="button" class="search" onClick={() => (overlay.value = 'palette')}>
            <span>{t('Find a key …')}</span> <kbd>/</kbd>
          </button>
          <Status />
          <span class="spacer" />
          <button
            type="button"
            aria-pressed={isPaused.value}
            title="p"
            onClick={() => (isPaused.value = !isPaused.value)}
          >
            {isPaused.value ? t('Resume') : t('Pause')}
          </button>
          <button type="button" class="round" aria-label={t('Keyboard')} onClick={() => (overlay.value = 'help')}>
            ?
          </button>
          <SignOut />
          <KillSwitch />
        </aside>
        <main id="main" tabIndex={-1} class={link.value === 'lost' ? 'stale' : undefined}>
          {isSignInWanted.value ? (
            <SignIn />
          ) : (
            <>
              <LostHub />
              {Page === undefined ? <p class="empty">{morePagesProblem.value ?? t('Loading …')}</p> : <Page />}
            </>
          )}
        </main>
      </div>
      <Notices />
      {overlay.value === 'palette' && <Palette />}
      {overlay.value === 'help' && <Help />}
    </div>
  )
}

function Status() {
  return (
    <span class={`link ${isPaused.value ? 'paused' : link.value}`} role="status">
      {statusText()}
    </span>
  )
}

function statusText(): ComponentChildren {
  if (isSignInWanted.value) return t('not signed in')
  if (link.value === 'lost') return t('no answer from the hub: figures are old')
  if (isPaused.value) return t('paused at {time}', { time: timeOfDay(heardAt.value) })
  if (link.value !== 'live') return t('connecting …')
  return (
    <>
      {t('live')} <span class="hub">· {overview.value?.hubId}</span>
    </>
  )
}

function AlarmCount() {
  const alarms = overview.value?.alarms.length ?? 0
  return alarms === 0 ? null : <span class="count">{alarms}</span>
}
