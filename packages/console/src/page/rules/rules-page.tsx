import { parseKeyText, type RulesView } from '@firebreak/core'
import { patternText, type Rule, type RuleLevel, type RuleRollout } from '@firebreak/core/rules'
import { useEffect, useRef, useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { dropDraft, keepDraft, keptDraft } from '../data/drafts.ts'
import { useLoaded } from '../data/loaded.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { count, duration } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { addressOf, route, setQuery } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { replaceRule, replaceWithUndo, ruleNow } from './replace-rule.ts'
import { draftOf, newDraft, type RuleDraft, readyToSave } from './rule-draft.ts'
import { RuleEditor } from './rule-editor.tsx'
import { RuleVersions } from './rule-versions.tsx'

/** What counts as hot, and what then? */
export function RulesPage() {
  const { edit } = route.value.query
  const { value, error, reload } = useLoaded<RulesView>('/v1/rules')
  const [removedId, setRemoved] = useState<string>()
  // As the list has it when it is confirmed.
  const removed = value?.rules.find(({ id }) => id === removedId)
  const remove = async (rule: Rule) => {
    await attempt(
      t('Rule {id} removed.', { id: rule.id }),
      () => replaceWithUndo(rule.id, rule, undefined),
      (undo) => undo().then(reload),
    )
    reload()
  }
  const setMode = async (rule: Rule, mode: Rule['mode']) => {
    await attempt(
      t('Rule {id} is {mode} now.', { id: rule.id, mode }),
      // The list may be old: what somebody else has changed in the rule stays.
      () => replaceWithUndo(rule.id, rule, { ...rule, mode }),
      (undo) => undo().then(reload),
    )
    reload()
  }
  return (
    <>
      <section aria-label={t('Rules')}>
        <div class="card-head">
          <h1>{t('Rules')}</h1>
          {canOperate.value && (
            <a class="button primary" href="#/rules?edit=new">
              {t('New rule')}
            </a>
          )}
        </div>
        <RecordTable
          label={t('Rules')}
          rows={value?.rules}
          error={error}
          id={({ id }) => id}
          empty={t('No rules: nothing will ever be hot.')}
          columns={[
            {
              title: t('Rule'),
              cell: ({ id, until }) => (
                <>
                  <code>{id}</code>
                  {until !== undefined && (
                    <small>
                      {t('until')} <Time at={until} isBare />
                    </small>
                  )}
                </>
              ),
            },
            {
              title: t('Keys'),
              cell: ({ pattern, redisClusterId, serviceId }) => (
                <>
                  <code title={patternText(pattern)}>{cutMiddle(patternText(pattern))}</code>
                  {(redisClusterId !== '*' || serviceId !== '*') && (
                    <small>{[redisClusterId, serviceId].filter((one) => one !== '*').join(' · ')}</small>
                  )}
                </>
              ),
            },
            { title: t('Hot when'), cell: (rule) => <Levels of={rule} text={(level) => whenText(rule, level)} /> },
            {
              title: t('Then'),
              cell: (rule) => (
                <>
                  <Levels of={rule} text={thenText} />
                  {rule.rollout !== undefined && <small>{rolloutText(rule.rollout)}</small>}
                </>
              ),
            },
            {
              title: t('Mode'),
              cell: (rule) =>
                canOperate.value ? (
                  <select
                    name={`mode-${rule.id}`}
                    aria-label={t('Mode of {id}', { id: rule.id })}
                    class={`mode ${rule.mode}`}
                    value={rule.mode}
                    onChange={(event) => void setMode(rule, event.currentTarget.value as Rule['mode'])}
                  >
                    {['on', 'shadow', 'off'].map((mode) => (
                      <option key={mode} value={mode}>
                        {t(mode)}
                      </option>
                    ))}
                  </select>
                ) : (
                  <span class={`state mode-${rule.mode}`}>{t(rule.mode)}</span>
                ),
              isTight: true,
            },
            {
              title: '',
              cell: (rule) =>
                canOperate.value && (
                  <span class="tools">
                    <a class="button quiet" href={addressOf({ page: 'rules', parts: [], query: { edit: rule.id } })}>
                      {t('Edit')}
                    </a>
                    <button type="button" class="quiet" onClick={() => setRemoved(rule.id)}>
                      {t('Remove')}
                    </button>
                  </span>
                ),
              isTight: true,
            },
          ]}
        />
      </section>
      {canOperate.value && edit !== undefined && value !== undefined && (
        <OpenRule key={edit} edit={edit} rules={value.rules} onSaved={reload} />
      )}
      <RuleVersions onChange={reload} />
      {removed !== undefined && (
        <Confirm
          title={t('Remove rule {id}?', { id: removed.id })}
          text={t('Keys that it made hot are released at once.')}
          action={t('Remove')}
          onConfirm={() => void remove(removed)}
          onClose={() => setRemoved(undefined)}
        />
      )}
    </>
  )
}

interface OneRuleProps {
  readonly edit: string
  readonly rules: readonly Rule[]
  readonly onSaved: () => void
}

/**
 * Reads the rules again before it opens one: the list may be from before the last save. A rule that is not there may be gone, or
 * come with the next answer of the hub.
 */
function OpenRule(props: OneRuleProps) {
  const { edit, rules } = props
  const [read, setRead] = useState<readonly Rule[]>()
  useEffect(() => {
    void call<RulesView>('GET', '/v1/rules').then(
      (answer) => setRead(answer.rules),
      () => setRead([]),
    )
  }, [])
  const opened = useRef<readonly Rule[]>()
  const isThere = (list: readonly Rule[] | undefined) => edit === 'new' || list?.some(({ id }) => id === edit) === true
  if (read !== undefined) opened.current ??= [read, rules].find(isThere)
  if (opened.current !== undefined) return <OneRule {...props} opened={opened.current} />
  return (
    <section aria-label={t('Rule')}>
      <p class="empty">{read === undefined ? '…' : t('There is no rule {id}.', { id: edit })}</p>
    </section>
  )
}

/** A rule that somebody has begun to change, and what it was before. */
interface KeptRule {
  readonly draft: RuleDraft
  readonly seen: Rule | undefined
}

/** The editor of one rule, or of a new one, which a hot key may have been the reason for. */
function OneRule({ edit, opened, onSaved }: OneRuleProps & { readonly opened: readonly Rule[] }) {
  // Another key is another new rule.
  const name = `rule ${edit} ${route.peek().query['key'] ?? ''}`
  const kept = useRef(keptDraft<KeptRule>(name))
  const [draft, setDraft] = useState(() => kept.current?.draft ?? firstDraft(edit, opened))
  const [refused, setRefused] = useState<string>()
  // As it was when the editor opened: whoever saves must have seen what they replace.
  const [seen, setSeen] = useState(() => kept.current?.seen ?? opened.find(({ id }) => id === edit))
  useEffect(() => document.querySelector('.rule-editor')?.scrollIntoView({ block: 'start' }), [])
  const change = (next: RuleDraft) => {
    setDraft(next)
    keepDraft(name, { draft: next, seen } satisfies KeptRule)
    setRefused(undefined)
  }
  const close = () => {
    dropDraft(name)
    setQuery({ edit: '', key: '', cluster: '', rate: '' })
  }
  const save = async () => {
    let ready: ReturnType<typeof readyToSave>
    let before: Rule | undefined
    try {
      // By what the hub has now: the list on the page may be two seconds old.
      const { rules } = await call<RulesView>('GET', '/v1/rules')
      ready = readyToSave(draft, rules)
      if ('problem' in ready) return setRefused(ready.problem)
      const { id } = ready
      before = rules.find((rule) => rule.id === id)
      if (!draft.isNew && before !== undefined && JSON.stringify(before) !== JSON.stringify(seen)) {
        setSeen(before)
        const json = JSON.stringify(before)
        return setRefused(t('Somebody has changed this rule meanwhile, to {json}. Save again to replace it.', { json }))
      }
      await call('PUT', pathOf(id), ready.body)
    } catch (error) {
      return setRefused((error as Error).message)
    }
    const { id } = ready
    onSaved()
    close()
    await attempt(
      t('Rule {id} saved.', { id }),
      () => ruleNow(id),
      (saved) => replaceRule(id, saved, before).then(onSaved),
    )
  }
  return <RuleEditor draft={draft} refused={refused} onChange={change} onSave={() => void save()} onCancel={close} />
}

const pathOf = (id: string): string => `/v1/rules/${encodeURIComponent(id)}`

function firstDraft(edit: string, rules: readonly Rule[]): RuleDraft {
  const rule = rules.find(({ id }) => id === edit)
  if (rule !== undefined) return draftOf(rule, false)
  const { key, cluster, rate } = route.peek().query
  if (key === undefined) return newDraft()
  return newDraft({ name: parseKeyText(key) ?? key, redisClusterId: cluster ?? '*', rate: Number(rate ?? 1000) })
}

function Levels({ of: { levels }, text }: { readonly of: Rule; readonly text: (level: RuleLevel) => string }) {
  return (
    <>
      {levels.map((level, index) => (
        <span key={index} class="line">
          {text(level)}
        </span>
      ))}
    </>
  )
}

function whenText({ windowMs }: Rule, { auto, enter, enterShare, measure }: RuleLevel): string {
  if (auto === true) return t('by what the key costs its node')
  const share = enterShare === undefined ? [] : [t('{n} % of accesses', { n: enterShare * 100 })]
  const amount = enter === Number.MAX_SAFE_INTEGER ? [] : [`${count(enter)} ${t(measure)}`]
  if (amount.length + share.length === 0) return t('never')
  return t('{amount} in {time}', { amount: [...amount, ...share].join(` ${t('or')} `), time: duration(windowMs) })
}

function rolloutText({ percent, stopped }: RuleRollout): string {
  const part = t('in {n} % of the processes', { n: percent })
  return stopped === undefined ? part : `${part}: ${stopped}`
}

function thenText({ strategies }: RuleLevel): string {
  return strategies.map(({ strategy }) => strategy).join(` ${t('or')} `)
}
