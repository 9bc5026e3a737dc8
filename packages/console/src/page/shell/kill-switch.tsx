import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { overview } from '../data/live.ts'

/** Turns every shield of the fleet into a plain pass-through, and back; for those who may. */
export function KillSwitch() {
  const [problem, setProblem] = useState<string>()
  const isOff = overview.value?.isOff
  if (isOff === undefined || !canOperate.value) return null
  const flip = async () => {
    const question = isOff
      ? 'Protect again?'
      : 'Switch every shield to plain pass-through? Hot keys will reach Redis unprotected.'
    if (!confirm(question)) return
    try {
      await call('POST', '/v1/switch', { isOff: !isOff })
      setProblem(undefined)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <span class="switch">
      {problem && <span class="problem">{problem}</span>}
      <button type="button" class={isOff ? 'primary' : 'quiet'} onClick={flip}>
        {isOff ? 'Protection is OFF — switch on' : 'Switch protection off'}
      </button>
    </span>
  )
}
