import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call, callText } from '../data/api.ts'
import { dropDraft, keepDraft, keptDraft } from '../data/drafts.ts'
import { useLoaded } from '../data/loaded.ts'
import { count } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface LimitRule {
  readonly return: number
  readonly line: string
  readonly shadow: boolean
  readonly applied: number
  readonly over: number
}

interface PolicyVersion {
  readonly version: number
  readonly loadedAtMs: number
  readonly origin: string
  readonly rules: number
  readonly isCurrent: boolean
}

/** Who is slowed: the policy of the rate-limit service, edited, tested on a request, and versioned. */
export function LimitsPage() {
  const rules = useLoaded<{ Version: number; rules: LimitRule[] }>('/v1/limits/rules')
  const history = useLoaded<PolicyVersion[]>('/v1/limits/history', 3000)
  const version = rules.value?.Version
  const reload = () => {
    rules.reload()
    history.reload()
  }
  const rollBack = async (to: number) => {
    await attempt(
      t('The policy is as in version {n} again.', { n: to }),
      () => call('POST', '/v1/limits/rollback', { version: to }),
      version === undefined ? undefined : () => call('POST', '/v1/limits/rollback', { version }),
    )
    reload()
  }
  return (
    <>
      <section aria-label={t('Limits')}>
        <h1>{version === undefined ? t('Limits') : t('Limits, version {n}', { n: version })}</h1>
        <RecordTable
          label={t('Limits')}
          rows={rules.value?.rules}
          error={rules.error}
          id={({ return: code, line }) => `${code} ${line}`}
          empty={t('No policy is loaded: write one below, or start the hub with --limits-policy FILE.')}
          columns={[
            { title: t('Rule'), cell: ({ line }) => <code>{line}</code> },
            { title: t('Answers'), cell: ({ return: code }) => String(code), isNumber: true },
            { title: t('Applied'), cell: ({ applied }) => count(applied), isNumber: true },
            { title: t('Over the limit'), cell: ({ over }) => count(over), isNumber: true },
            { title: t('Mode'), cell: ({ shadow }) => <span class="state">{shadow ? t('shadow') : t('on')}</span> },
          ]}
        />
      </section>
      <div class="halves">
        {canOperate.value && version !== undefined && <PolicyEditor version={version} onSaved={reload} />}
        <TryRequest />
      </div>
      <section aria-label={t('Versions')}>
        <h2>{t('Versions')}</h2>
        <RecordTable
          label={t('Versions')}
          rows={history.value?.toReversed()}
          error={history.error}
          id={(one) => String(one.version)}
          empty={t('No policy yet.')}
          columns={[
            { title: t('Version'), cell: (one) => one.version, isNumber: true, isTight: true },
            { title: t('Time'), cell: ({ loadedAtMs }) => (loadedAtMs === 0 ? '–' : <Time at={loadedAtMs} />) },
            { title: t('From'), cell: ({ origin }) => origin },
            { title: t('Rules'), cell: (one) => count(one.rules), isNumber: true },
            {
              title: '',
              cell: (one) =>
                one.isCurrent ? (
                  <span class="state handled">{t('in force')}</span>
                ) : (
                  canOperate.value && (
                    <button type="button" class="quiet" onClick={() => void rollBack(one.version)}>
                      {t('Roll back')}
                    </button>
                  )
                ),
              isTight: true,
            },
          ]}
        />
      </section>
    </>
  )
}

const draftName = 'limits policy'

interface PolicyDraft {
  readonly text: string
  /** The version that it was made from. */
  readonly base: number
}

/** The whole policy as text. Saving names the version that was read: nobody's change is lost. */
function PolicyEditor({ version, onSaved }: { readonly version: number; readonly onSaved: () => void }) {
  const [kept, setKept] = useState(() => keptDraft<PolicyDraft>(draftName))
  const [problem, setProblem] = useState<string>()
  const { text, base } = kept ?? { text: undefined, base: version }
  const change = (next: PolicyDraft | undefined) => {
    setKept(next)
    if (next === undefined) dropDraft(draftName)
    else keepDraft(draftName, next)
  }
  const read = async () => {
    try {
      const dumped = version === 0 ? '[rules]\n\n[result]\n' : await callText('GET', '/v1/limits/dump?format=text')
      change({ text: dumped, base: version })
      setProblem(undefined)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  const save = async () => {
    try {
      await callText('PUT', `/v1/limits/policy?expected=${base}`, text)
    } catch (error) {
      return setProblem((error as Error).message)
    }
    change(undefined)
    const undo = base === 0 ? undefined : () => call('POST', '/v1/limits/rollback', { version: base })
    await attempt(t('Policy saved.'), async () => {}, undo)
    onSaved()
  }
  return (
    <section aria-label={t('Policy')}>
      <div class="card-head">
        <h2>{t('Policy')}</h2>
        {text === undefined && (
          <button type="button" onClick={() => void read()}>
            {t('Edit the policy')}
          </button>
        )}
      </div>
      {text === undefined ? (
        <p class="empty">{t('One text holds all rules, dicts and results.')}</p>
      ) : (
        <>
          <textarea
            name="policy"
            aria-label={t('Policy')}
            spellcheck={false}
            value={text}
            onInput={(event) => change({ text: event.currentTarget.value, base })}
          />
          {base !== version && (
            <p class="problem" role="alert">
              {t(
                'Version {n} was saved while you were editing version {base}. Your text is kept; saving it is refused.',
                {
                  n: version,
                  base,
                },
              )}{' '}
              <button type="button" onClick={() => change({ text, base: version })}>
                {t('Replace version {n} with my text', { n: version })}
              </button>
            </p>
          )}
          <p class="buttons">
            <button type="button" class="primary" onClick={() => void save()}>
              {t('Save policy')}
            </button>
            <button type="button" onClick={() => change(undefined)}>
              {t('Cancel')}
            </button>
          </p>
        </>
      )}
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </section>
  )
}

/** What the policy would answer to a request, without counting it. */
function TryRequest() {
  const [parameters, setParameters] = useState('uid=1')
  const [answer, setAnswer] = useState<string>()
  const [problem, setProblem] = useState<string>()
  const ask = async (event: SubmitEvent) => {
    event.preventDefault()
    try {
      setAnswer(JSON.stringify(await call('GET', `/v1/limits/browse?${parameters}`), null, 2))
      setProblem(undefined)
    } catch (error) {
      setAnswer(undefined)
      setProblem((error as Error).message)
    }
  }
  return (
    <section aria-label={t('Try a request')}>
      <h2>{t('Try a request')}</h2>
      <form class="fields" onSubmit={(event) => void ask(event)}>
        <label class="wide">
          {t('Parameters, as in a query')}
          <input name="parameters" value={parameters} onInput={(event) => setParameters(event.currentTarget.value)} />
        </label>
        <button type="submit">{t('Ask')}</button>
      </form>
      {problem !== undefined ? (
        <p class="problem" role="alert">
          {problem}
        </p>
      ) : answer === undefined ? (
        <p class="empty">{t('Requests tried here are not counted.')}</p>
      ) : (
        <pre class="answer">{answer}</pre>
      )}
    </section>
  )
}
