import type { RulesView } from '@firebreak/core'
import { patternText, type Rule, type RuleLevel } from '@firebreak/core/rules'
import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { count, timeOfDay } from '../format/format.ts'
import { draftOf, newDraft, readyToSave } from './rule-draft.ts'
import { RuleEditor } from './rule-editor.tsx'

/** The rules, and an editor for those who may change them. */
export function RulesPage() {
  const { value, error, reload } = useLoaded<RulesView>('/v1/rules')
  const [draft, setDraft] = useState(newDraft)
  const [problem, setProblem] = useState<string>()
  const change = async (action: () => Promise<unknown>) => {
    try {
      await action()
      setProblem(undefined)
      reload()
      return true
    } catch (failure) {
      setProblem((failure as Error).message)
      return false
    }
  }
  const edit = (next: typeof draft) => {
    setDraft(next)
    setProblem(undefined)
  }
  const remove = ({ id }: Rule) =>
    confirm(`Remove rule ${id}?`) && change(() => call('DELETE', `/v1/rules/${encodeURIComponent(id)}`))
  const save = async () => {
    const ready = readyToSave(draft, value?.rules ?? [])
    if ('problem' in ready) setProblem(ready.problem)
    else if (await change(() => call('PUT', `/v1/rules/${encodeURIComponent(ready.id)}`, ready.body))) edit(newDraft())
  }
  return (
    <section>
      <h2>Rules</h2>
      {(problem ?? error) && (
        <p class="problem" role="alert">
          {problem ?? error}
        </p>
      )}
      <RuleTable
        rules={value?.rules ?? []}
        onEdit={(rule) => edit(draftOf(rule, false))}
        onRemove={(rule) => void remove(rule)}
      />
      {value?.rules.length === 0 && <p class="empty">No rules: nothing will ever be hot.</p>}
      {canOperate.value && value !== undefined && (
        <RuleEditor draft={draft} onChange={edit} onSave={() => void save()} onCancel={() => edit(newDraft())} />
      )}
    </section>
  )
}

interface RuleTableProps {
  readonly rules: readonly Rule[]
  readonly onEdit: (rule: Rule) => void
  readonly onRemove: (rule: Rule) => void
}

function RuleTable({ rules, onEdit, onRemove }: RuleTableProps) {
  return (
    <table>
      <thead>
        <tr>
          <th>Rule</th>
          <th>Keys</th>
          <th>Hot when</th>
          <th>Then</th>
          <th>Mode</th>
          {canOperate.value && <th />}
        </tr>
      </thead>
      <tbody>
        {rules.map((rule) => (
          <tr key={rule.id}>
            <td>
              <code>{rule.id}</code>
              {rule.until !== undefined && <small>until {timeOfDay(rule.until)}</small>}
            </td>
            <td>
              <code title={patternText(rule.pattern)}>{cutMiddle(patternText(rule.pattern))}</code>
            </td>
            <td>{rule.levels.map((level) => whenText(rule, level)).join('; ')}</td>
            <td>
              {rule.levels.map((level) => level.strategies.map(({ strategy }) => strategy).join(' or ')).join('; ')}
            </td>
            <td>{rule.mode}</td>
            {canOperate.value && (
              <td>
                <button type="button" class="quiet" onClick={() => onEdit(rule)}>
                  Edit
                </button>{' '}
                <button type="button" class="quiet" onClick={() => onRemove(rule)}>
                  Remove
                </button>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function whenText({ windowMs }: Rule, { enter, enterShare, measure }: RuleLevel): string {
  const share = enterShare === undefined ? [] : [`${enterShare * 100} % of accesses`]
  const amount = enter === Number.MAX_SAFE_INTEGER ? [] : [`${count(enter)} ${measure}`]
  return amount.length + share.length === 0 ? 'never' : `${[...amount, ...share].join(' or ')} in ${windowMs / 1000} s`
}
