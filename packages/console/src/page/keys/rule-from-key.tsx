import { readableKey } from '@firebreak/core'
import { addressOf } from '../shell/route.ts'
import { t } from '../text/text.ts'

interface RuleFromKeyProps {
  readonly redisClusterId: string
  /** Key text. */
  readonly text: string
  readonly ratePerSecond: number
}

/** Leads to a new rule about this key, hot from half of its rate on: for what shall last. */
export function RuleFromKey({ redisClusterId, text, ratePerSecond }: RuleFromKeyProps) {
  const query = { edit: 'new', key: text, cluster: redisClusterId, rate: String(Math.round(ratePerSecond)) }
  return (
    <a class="button quiet" href={addressOf({ page: 'rules', parts: [], query })}>
      {t('+ rule')}
      <span class="unseen"> {t('from {key}', { key: readableKey(text) })}</span>
    </a>
  )
}
