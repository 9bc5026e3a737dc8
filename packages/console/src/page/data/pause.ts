import { signal } from '@preact/signals'

/** While it is true nothing on the page moves: it shows one moment. */
export const isPaused = signal(false)
