import type { Overview } from '@firebreak/core'
import { useRef, useState } from 'preact/hooks'
import { t } from '../text/text.ts'

/** Leads from an empty hub to the first protected key, and notices each step by itself; the last one stays until it was read. */
export function FirstRun({ now, isFirst }: { readonly now: Overview; readonly isFirst: boolean }) {
  const wasFirst = useRef(false)
  const [isRead, setRead] = useState(false)
  if (isFirst) wasFirst.current = true
  if (!wasFirst.current || isRead) return null
  const hasSensor = !isFirst || now.sensors.hosts > 0
  const hasKey = !isFirst || now.keys.length > 0
  const handled = now.keys.find(({ handling }) => handling === 'handled')
  const steps = [
    {
      isDone: hasSensor,
      title: t('Connect a service'),
      text: t(
        'In Node, wrap the client you have. For any other language, start a proxy and point your services at it.',
      ),
      code: `redis = protect(redis, { hubs: ['${location.origin}'], serviceId: 'shop' })\n\nnpx firebreak proxy --hub ${location.origin} --redis redis://127.0.0.1:6379`,
    },
    {
      isDone: hasKey,
      title: t('Send traffic'),
      text: t('Let the service read its keys as usual, or play a flash sale:'),
      code: 'npm run demo',
    },
    {
      isDone: !isFirst || handled !== undefined,
      title: t('See the first key protected'),
      text:
        isFirst && handled === undefined
          ? t('A key that crosses the threshold of a rule shows up here by itself.')
          : t('Done: a key is hot and handled.'),
      code: '',
    },
  ]
  return (
    <section class="first-run" aria-label={t('First steps')}>
      <div class="card-head">
        <h2>{t('Three steps to the first protected key')}</h2>
        {steps.every(({ isDone }) => isDone) && (
          <button type="button" onClick={() => setRead(true)}>
            {t('Close')}
          </button>
        )}
      </div>
      <ol>
        {steps.map(({ isDone, title, text, code }) => (
          <li key={title} class={isDone ? 'is-done' : undefined}>
            <h3>
              {title} {isDone && <span class="state handled">{t('done')}</span>}
            </h3>
            <p>{text}</p>
            {code !== '' && <pre>{code}</pre>}
          </li>
        ))}
      </ol>
    </section>
  )
}
