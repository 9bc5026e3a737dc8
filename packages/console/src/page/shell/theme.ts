import { signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const stored = 'firebreak-theme'

export const theme = signal<Theme>(initialTheme())

/** Counts up whenever colours change, for what is drawn on a canvas. */
export const colourTurn = signal(0)

/** Changes the theme and remembers it in this browser. */
export function setTheme(next: Theme): void {
  theme.value = next
  localStorage.setItem(stored, next)
  applyTheme()
}

export function applyTheme(): void {
  const root = document.documentElement
  if (theme.value === 'system') delete root.dataset['theme']
  else root.dataset['theme'] = theme.value
  colourTurn.value++
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colourTurn.value++)

/** Whether the page is dark at this moment, by choice or by the system. */
export function isDarkNow(): boolean {
  if (theme.value !== 'system') return theme.value === 'dark'
  return matchMedia('(prefers-color-scheme: dark)').matches
}

/** Colours that were asked for under the theme of this turn: a chart asks for hundreds at each drawing. */
const known = new Map<string, string>()
let knownTurn = -1

/** The colour of a CSS variable as the theme has it now. */
export function colourOf(variable: string): string {
  if (knownTurn !== colourTurn.peek()) known.clear()
  knownTurn = colourTurn.peek()
  const colour = known.get(variable) ?? computedColour(variable)
  known.set(variable, colour)
  return colour
}

function computedColour(variable: string): string {
  const probe = document.createElement('i')
  probe.style.color = `var(${variable})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function initialTheme(): Theme {
  const chosen = localStorage.getItem(stored)
  return themes.find((one) => one === chosen) ?? 'system'
}

/** What the themes are called; English, shown through `t`. */
export const themeTitles = { system: 'As the system', light: 'Light', dark: 'Dark' } as const satisfies Record<
  Theme,
  string
>
