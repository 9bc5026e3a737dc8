import type { Overview } from '@firebreak/core'
import { t } from '../text/text.ts'

/** Leads from an empty hub to the first protected key, and notices each step by itself. */
export function FirstRun({ now }: { readonly now: Overview }) {
  const hasSensor = now.sensors.hosts > 0
  const hasKey = now.keys.length > 0
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
      text: t('Let the service read its keys as ever, or play a flash sale:'),
      code: 'npm run demo',
    },
    {
      isDone: handled !== undefined,
      title: t('See the first key protected'),
      text:
        handled === undefined
          ? t('A key that crosses the threshold of a rule shows up here by itself.')
          : t('Done: a key is hot and handled.'),
      code: '',
    },
  ]
  return (
    <section class="first-run" aria-label={t('First steps')}>
      <h2>{t('Three steps to the first protected key')}</h2>
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
