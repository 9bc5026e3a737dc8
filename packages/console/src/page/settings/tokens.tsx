import { useState } from 'preact/hooks'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { Time } from '../format/time.tsx'
import { ChoiceField, TextField } from '../rules/fields.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface Credential {
  readonly id: string
  readonly name: string
  readonly kind: 'app' | 'person'
  readonly role?: string
  readonly services?: readonly string[]
  readonly clusters?: readonly string[]
  readonly createdBy: string
  readonly createdAt: number
  readonly lastUsedAt: number | null
}

/** Who may come in: tokens of people and of apps. A new token is shown once. */
export function Tokens() {
  const { value, error, reload } = useLoaded<{ tokens: Credential[] }>('/v1/tokens', 5000)
  const [fresh, setFresh] = useState<string>()
  const [revoked, setRevoked] = useState<Credential>()
  const change = async (action: () => Promise<{ token?: string } | undefined>, done: string) => {
    const isDone = await attempt(done, async () => setFresh((await action())?.token))
    if (isDone) reload()
  }
  return (
    <section aria-label={t('Tokens and people')}>
      <h2>{t('Tokens and people')}</h2>
      {fresh !== undefined && (
        <p class="in-force">
          {t('The new token, shown only once:')} <code>{fresh}</code>
        </p>
      )}
      <RecordTable
        label={t('Tokens and people')}
        rows={value?.tokens}
        error={error}
        id={({ id }) => id}
        empty={t('No tokens: everybody on this machine may do everything.')}
        columns={[
          { title: t('Name'), cell: ({ name }) => name },
          { title: t('Kind'), cell: ({ kind, role }) => (role === undefined ? t(kind) : t(role)) },
          {
            title: t('For'),
            cell: ({ services, clusters }) => [...(services ?? []), ...(clusters ?? [])].join(', ') || '–',
            isMinor: true,
          },
          { title: t('Created by'), cell: ({ createdBy }) => createdBy, isMinor: true },
          {
            title: t('Last used'),
            cell: ({ lastUsedAt }) => (lastUsedAt === null ? t('never') : <Time at={lastUsedAt} />),
          },
          {
            title: '',
            cell: (credential) => (
              <span class="tools">
                <button
                  type="button"
                  class="quiet"
                  onClick={() =>
                    void change(
                      () => call('POST', `/v1/tokens/${encodeURIComponent(credential.id)}/rotate`, {}),
                      t('Token rotated.'),
                    )
                  }
                >
                  {t('Rotate')}
                </button>
                <button type="button" class="quiet" onClick={() => setRevoked(credential)}>
                  {t('Revoke')}
                </button>
              </span>
            ),
            isTight: true,
          },
        ]}
      />
      <NewToken onCreate={(body) => change(() => call('POST', '/v1/tokens', body), t('Token created.'))} />
      {revoked !== undefined && (
        <Confirm
          title={t('Revoke the token of {name}?', { name: revoked.name })}
          text={t('It stops working at once, and open connections are closed.')}
          action={t('Revoke')}
          onConfirm={() =>
            void change(() => call('DELETE', `/v1/tokens/${encodeURIComponent(revoked.id)}`), t('Token revoked.'))
          }
          onClose={() => setRevoked(undefined)}
        />
      )}
    </section>
  )
}

const kinds = ['viewer', 'operator', 'admin', 'app'] as const

function NewToken({ onCreate }: { readonly onCreate: (body: object) => Promise<void> }) {
  const [name, setName] = useState('')
  const [kind, setKind] = useState<(typeof kinds)[number]>('viewer')
  const [services, setServices] = useState('')
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const list = services.split(/[\s,]+/).filter((one) => one !== '')
    await onCreate(
      kind === 'app' ? { kind, name, services: list, clusters: ['*'] } : { kind: 'person', name, role: kind },
    )
  }
  return (
    <form class="fields" onSubmit={(event) => void submit(event)}>
      <TextField label={t('Name')} name="name" value={name} onChange={setName} />
      <ChoiceField label={t('Kind')} name="kind" value={kind} choices={kinds} onChange={setKind} />
      {kind === 'app' && (
        <TextField label={t('Services, with commas')} name="services" value={services} onChange={setServices} />
      )}
      <button type="submit">{t('Create a token')}</button>
    </form>
  )
}
