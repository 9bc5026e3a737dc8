import type { Overview } from '@firebreak/core'
import { signal } from '@preact/signals'
import { isSignInWanted } from './access.ts'
import { call } from './api.ts'
import { isPaused } from './pause.ts'

/** The newest overview, undefined before the first. */
export const overview = signal<Overview | undefined>(undefined)

/** When the newest overview came, by this browser's clock. */
export const heardAt = signal(0)

/** Whether the page hears from the hub; a page that shows old figures must say so. */
export const link = signal<'connecting' | 'live' | 'lost'>('connecting')

const silenceMs = 5000
const lateMs = 1000
/** With this code the hub ends the connection of somebody whose session is over. */
const signInAgain = 4003
const noCode = 1006

/** Listens to the hub's live WebSocket and comes back by itself whenever it is lost. */
export function connectLive(): void {
  const url = new URL('/v1/live', location.href)
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
  const socket = new WebSocket(url)
  let isHeard = false
  const ended = (code: number) => {
    clearTimeout(timer)
    socket.onmessage = socket.onclose = null
    if (link.value === 'live') link.value = 'lost'
    // A browser does not tell why a WebSocket was refused; the API does.
    if (!isHeard || code === signInAgain) call('GET', '/v1/overview').catch(() => {})
    setTimeout(connectLive, 1000)
  }
  // Closing a silent connection takes the browser a minute: nobody waits for that.
  const silent = () => {
    // The page itself slept: what came meanwhile is heard first.
    if (Date.now() - dueAt > lateMs) return wait(lateMs)
    socket.close()
    ended(noCode)
  }
  let dueAt = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const wait = (ms: number) => {
    clearTimeout(timer)
    dueAt = Date.now() + ms
    timer = setTimeout(silent, ms)
  }
  wait(silenceMs)
  socket.onmessage = (event) => {
    wait(silenceMs)
    isHeard = true
    link.value = 'live'
    if (isPaused.value && overview.value !== undefined) return
    overview.value = JSON.parse(String(event.data)) as Overview
    heardAt.value = Date.now()
  }
  socket.onclose = ({ code }) => ended(code)
}

// Nobody else who signs in, or out, must see the previous user's figures.
isSignInWanted.subscribe((isWanted) => {
  if (!isWanted) return
  overview.value = undefined
  link.value = 'connecting'
})
