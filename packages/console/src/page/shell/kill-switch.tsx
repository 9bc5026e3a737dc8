import type { HostView } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { overview } from '../data/live.ts'
import { t } from '../text/text.ts'
import { Confirm } from './dialog.tsx'
import { notify } from './notices.tsx'

/** Turns every shield of the fleet into a plain pass-through, and back; for those who may. */
export function KillSwitch() {
  const [isAsking, setAsking] = useState(false)
  const isOff = overview.value?.isOff
  if (isOff === undefined || !canOperate.value) return null
  const confirm = () => void flip(!isOff)
  return (
    <>
      <button type="button" class={isOff ? 'primary' : 'danger quiet'} onClick={() => setAsking(true)}>
        {isOff ? t('Protection is OFF: switch on') : t('Switch protection off')}
      </button>
      {isAsking && (
        <Confirm
          title={isOff ? t('Protect again?') : t('Switch protection off?')}
          text={
            isOff
              ? t('Every shield carries out its strategies again.')
              : t('Every shield becomes a plain pass-through within a second. Hot keys will reach Redis unprotected.')
          }
          action={isOff ? t('Switch on') : t('Switch off')}
          onConfirm={confirm}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  )
}

interface Switched {
  readonly isOff: boolean
  /** Missing where the hub is of an earlier version. */
  readonly isStored?: boolean
}

const waitMs = 250
const waits = 16

/** Says what is true afterwards: what the store has, and how many of the sensors follow. */
async function flip(to: boolean): Promise<void> {
  try {
    const { isStored = true } = await call<Switched>('POST', '/v1/switch', { isOff: to })
    const { all, following } = await followers(to)
    const done = to
      ? t('Protection is off: {n} of {all} sensors have confirmed.', { n: following, all })
      : t('Protection is on: {n} of {all} sensors have confirmed.', { n: following, all })
    const text = isStored
      ? done
      : `${done} ${t('The store is unreachable: it and the other hubs follow when it recovers.')}`
    notify({ text, isProblem: !isStored || following < all, undo: () => flip(!to) })
  } catch (error) {
    notify({ text: (error as Error).message, isProblem: true })
  }
}

/** How many of the connected sensors have confirmed, once all have or no more is to be expected. */
async function followers(isOff: boolean): Promise<{ readonly all: number; readonly following: number }> {
  for (let wait = 0; ; wait++) {
    const { hosts } = await call<{ hosts: HostView[] }>('GET', '/v1/hosts')
    const connected = hosts.filter((host) => host.isConnected !== false)
    const following = connected.filter((host) => host.isOff === isOff).length
    if (following === connected.length || wait === waits) return { all: connected.length, following }
    await new Promise((resolve) => setTimeout(resolve, waitMs))
  }
}
