import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { overview } from '../data/live.ts'
import { t } from '../text/text.ts'
import { Confirm } from './dialog.tsx'
import { attempt } from './notices.tsx'

/** Turns every shield of the fleet into a plain pass-through, and back; for those who may. */
export function KillSwitch() {
  const [isAsking, setAsking] = useState(false)
  const isOff = overview.value?.isOff
  if (isOff === undefined || !canOperate.value) return null
  const flip = (to: boolean) => call('POST', '/v1/switch', { isOff: to })
  const confirm = () =>
    void attempt(
      isOff ? t('Protection is on.') : t('Protection is off.'),
      () => flip(!isOff),
      () => flip(isOff),
    )
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
