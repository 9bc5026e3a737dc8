import type { DryRunView } from '@firebreak/core'
import { useEffect, useState } from 'preact/hooks'
import { call, RefusedCall } from '../data/api.ts'

const pauseMs = 400
const againMs = 1500
const tries = 10

/**
 * What a rule would have done in what was recorded, asked whenever somebody stops typing. `rule` is the rule as JSON;
 * undefined asks nothing. The hub runs one at a time: while it is busy with what somebody typed a moment before, it is asked again.
 */
export function useDryRun(
  rule: string | undefined,
  period = '',
): { readonly run?: DryRunView; readonly refused?: string } {
  const [found, setFound] = useState<{ readonly run?: DryRunView; readonly refused?: string }>({})
  useEffect(() => {
    if (rule === undefined) return
    let isWanted = true
    const ask = async (triesLeft: number) => {
      try {
        // A rule that has no name yet can be tried all the same.
        const body = { ...(JSON.parse(rule) as object), id: 'draft' }
        const run = await call<DryRunView>('POST', `/v1/rules/draft/dry-run${period}`, body)
        if (isWanted) setFound({ run })
      } catch (error) {
        if (!isWanted) return
        const isBusy = error instanceof RefusedCall && error.code === 'FB_DRY_RUN_BUSY'
        if (!isBusy || triesLeft === 0) return setFound({ refused: (error as Error).message })
        timer = setTimeout(() => void ask(triesLeft - 1), againMs)
      }
    }
    let timer = setTimeout(() => void ask(tries), pauseMs)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [rule, period])
  return found
}
