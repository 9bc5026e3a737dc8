import type { Overview } from '@firebreak/core'
import { signal } from '@preact/signals'
import { call } from './api.ts'

/** The newest overview, undefined before the first. */
export const overview = signal<Overview | undefined>(undefined)

/** Whether the page hears from the hub; a page that shows old figures must say so. */
export const link = signal<'connecting' | 'live' | 'lost'>('connecting')

const silenceMs = 5000

/** Listens to the hub's live WebSocket and comes back by itself whenever it is lost. */
export function connectLive(): void {
  const url = new URL('/v1/live', location.href)
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
  const socket = new WebSocket(url)
  let timer = setTimeout(() => socket.close(), silenceMs)
  socket.onmessage = (event) => {
    clearTimeout(timer)
    timer = setTimeout(() => socket.close(), silenceMs)
    overview.value = JSON.parse(String(event.data)) as Overview
    link.value = 'live'
  }
  socket.onclose = () => {
    clearTimeout(timer)
    // A browser does not tell why a WebSocket was refused; the API does.
    if (link.value === 'connecting') call('GET', '/v1/overview').catch(() => {})
    else link.value = 'lost'
    setTimeout(connectLive, 1000)
  }
}
