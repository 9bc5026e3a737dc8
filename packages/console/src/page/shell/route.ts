import { signal } from '@preact/signals'

/** The page in the address: `#/rules` → `rules`. */
export const route = signal(currentRoute())

function currentRoute(): string {
  return location.hash.replace(/^#\//, '') || 'now'
}

addEventListener('hashchange', () => {
  route.value = currentRoute()
})
