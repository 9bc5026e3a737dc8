import { signal } from '@preact/signals'
import { isPaused } from '../data/pause.ts'
import { pages } from './pages.ts'
import { open } from './route.ts'

/** Which window lies over the page. */
export const overlay = signal<'none' | 'palette' | 'help'>('none')

/** Closes a window, unless another one has taken its place: a browser tells of Escape a moment later. */
export function closeOverlay(which: 'palette' | 'help'): void {
  if (overlay.value === which) overlay.value = 'none'
}

/** `g` was typed, and the letter of a page is awaited. */
let isGoing = false

/** Hears the keys that work on every page; a field that is typed into, and an open window, keep theirs. */
export function listenToKeyboard(): void {
  addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey)) return take(event, openPalette)
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target) || hasDialog()) return
    if (isGoing) {
      isGoing = false
      const page = pages.find(({ letter }) => letter === event.key)
      if (page !== undefined) take(event, () => open(`#/${page.name}`))
      return
    }
    const action = actions[event.key]
    if (action !== undefined) take(event, action)
  })
}

const actions: Readonly<Record<string, () => void>> = {
  '/': openPalette,
  '?': () => {
    overlay.value = 'help'
  },
  g: () => {
    isGoing = true
  },
  p: () => {
    isPaused.value = !isPaused.value
  },
  j: () => moveRow(1),
  k: () => moveRow(-1),
}

function openPalette(): void {
  overlay.value = 'palette'
}

function take(event: KeyboardEvent, action: () => void): void {
  event.preventDefault()
  action()
}

/** The focus goes to the link or button of the next row; Enter then opens it. */
function moveRow(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('main tbody tr')].filter((row) => firstControl(row) !== null)
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  const next = at === -1 ? (by === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))
  const row = rows[next]
  if (row === undefined) return
  firstControl(row)!.focus()
  row.scrollIntoView({ block: 'nearest' })
}

function firstControl(row: HTMLElement): HTMLElement | null {
  return row.querySelector<HTMLElement>('a[href], button')
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null
}

function hasDialog(): boolean {
  return document.querySelector('dialog[open]') !== null
}
