import type { KeyInspection } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canAdminister } from '../data/access.ts'
import { call } from '../data/api.ts'
import { bytes, duration, rate } from '../format/format.ts'
import { t } from '../text/text.ts'

interface InspectionProps {
  readonly redisClusterId: string
  /** Key text, as addresses carry it. */
  readonly text: string
}

/** What the key is: asked of a process that uses it, since the hub has no way to the protected Redis. Audited. */
export function Inspection({ redisClusterId, text }: InspectionProps) {
  const [found, setFound] = useState<KeyInspection>()
  const [problem, setProblem] = useState<string>()
  const path = `/v1/keys/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(text)}/inspection`
  const ask = async (value: boolean) => {
    try {
      const answer = await call<KeyInspection>('POST', path, { value })
      setFound(answer)
      const isKept = value && answer.value === undefined && answer.type !== 'none'
      setProblem(isKept ? t('That process shows no values: its option showsValues is off.') : undefined)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <section aria-label={t('What it is')}>
      <div class="card-head">
        <h2>{t('What it is')}</h2>
        <span class="tools">
          <button type="button" onClick={() => void ask(false)}>
            {t('Ask type, size, TTL and commands')}
          </button>
          {canAdminister.value && (
            <button type="button" onClick={() => void ask(true)}>
              {t('Show its value')}
            </button>
          )}
        </span>
      </div>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {found === undefined ? (
        <p class="empty">{t('This asks a process that uses the key, and the audit records who asked.')}</p>
      ) : (
        <Found of={found} />
      )}
    </section>
  )
}

function Found({
  of: { type, bytes: size, ttlMs, encoding, commands, value, serviceId, hostId },
}: {
  readonly of: KeyInspection
}) {
  return (
    <>
      <dl class="facts">
        <dt>{t('Type')}</dt>
        <dd>
          {type === 'none' ? t('There is no such key now.') : type}
          {encoding !== '' && ` (${encoding})`}
        </dd>
        <dt>{t('Size')}</dt>
        <dd>{size === null ? '–' : bytes(size)}</dd>
        <dt>TTL</dt>
        <dd>{ttlMs === null ? t('does not expire') : duration(ttlMs)}</dd>
        <dt>{t('Commands')}</dt>
        <dd>
          {commands === null && t('not counted: the key is not hot in that process')}
          {commands?.length === 0 && t('none in the last second')}
          {commands?.map(({ name, perSecond }) => `${name} ${rate(perSecond)}`).join(', ')}
        </dd>
        <dt>{t('Asked')}</dt>
        <dd>
          {serviceId} · {hostId}
        </dd>
      </dl>
      {value !== undefined && (
        <>
          <p class="muted">
            {value.isBase64 ? t('Its value, in base64') : t('Its value')}
            {value.isCut && ` · ${t('the beginning only')}`}
          </p>
          <pre class="answer">{value.text}</pre>
        </>
      )}
    </>
  )
}
