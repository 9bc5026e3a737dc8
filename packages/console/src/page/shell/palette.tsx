import { type KeyView, readableKey } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { isPaused } from '../data/pause.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { rate } from '../format/format.ts'
import { t } from '../text/text.ts'
import { Dialog } from './dialog.tsx'
import { closeOverlay } from './keyboard.ts'
import { pages } from './pages.ts'
import { keyAddress, open } from './route.ts'
import { setTheme, themes, themeTitles } from './theme.ts'

interface Choice {
  readonly title: string
  readonly hint: string
  readonly run: () => void
}

const shownChoices = 12

/** Finds a key, a page or a command by a few letters. */
export function Palette() {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const found = useLoaded<{ keys: KeyView[] }>(
    text.length > 1 ? `/v1/keys?limit=8&match=${encodeURIComponent(text)}` : '',
    60_000,
  )
  const close = () => closeOverlay('palette')
  const keys = found.value?.keys ?? (text === '' ? (overview.value?.keys ?? []).slice(0, 5) : [])
  const wanted = text.toLowerCase()
  const choices = [
    ...keys.map(keyChoice),
    ...commands().filter(({ title, hint }) => `${title} ${hint}`.toLowerCase().includes(wanted)),
  ].slice(0, shownChoices)
  const run = (choice: Choice | undefined) => {
    if (choice === undefined) return
    close()
    choice.run()
  }
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) {
      event.preventDefault()
      setAt((before) => (before + by + choices.length) % Math.max(1, choices.length))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(choices[at])
    }
  }
  return (
    <Dialog title={t('Find a key, a page or a command')} name="palette" onClose={close}>
      <input
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-choices"
        aria-activedescendant={`choice-${at}`}
        aria-label={t('Find a key, a page or a command')}
        placeholder={t('product:100, rules, dark …')}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={move}
      />
      <div role="listbox" id="palette-choices" aria-label={t('Results')}>
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the field above keeps the focus.
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above hears the keys.
          <div
            key={`${choice.title} ${choice.hint}`}
            id={`choice-${index}`}
            role="option"
            aria-selected={index === at}
            class="choice"
            onClick={() => run(choice)}
          >
            <span>{choice.title}</span> <small>{choice.hint}</small>
          </div>
        ))}
      </div>
      {choices.length === 0 && <p class="empty">{t('No matches.')}</p>}
    </Dialog>
  )
}

function keyChoice({ redisClusterId, key, ratePerSecond }: KeyView): Choice {
  return {
    title: cutMiddle(readableKey(key)),
    hint: `${redisClusterId} · ${rate(ratePerSecond)}`,
    run: () => open(keyAddress(redisClusterId, key)),
  }
}

function commands(): Choice[] {
  return [
    ...pages.map(({ name, title, letter }) => ({
      title: t(title),
      hint: `g ${letter}`,
      run: () => open(`#/${name}`),
    })),
    {
      title: isPaused.value ? t('Resume') : t('Pause'),
      hint: 'p',
      run: () => {
        isPaused.value = !isPaused.value
      },
    },
    ...(canOperate.value ? [{ title: t('New rule'), hint: t('Rules'), run: () => open('#/rules?edit=new') }] : []),
    ...themes.map((theme) => ({ title: t(themeTitles[theme]), hint: t('Theme'), run: () => setTheme(theme) })),
  ]
}
