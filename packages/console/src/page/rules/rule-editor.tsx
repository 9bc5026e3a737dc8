import { t } from '../text/text.ts'
import { DryRun } from './dry-run.tsx'
import { draftOf, draftOfJson, type RuleDraft } from './rule-draft.ts'
import { RuleFields } from './rule-fields.tsx'

interface RuleEditorProps {
  readonly draft: RuleDraft
  /** What the hub refused it for. */
  readonly refused: string | undefined
  readonly onChange: (draft: RuleDraft) => void
  readonly onSave: () => void
  readonly onCancel: () => void
}

/** A rule as a form and as JSON, side by side, with what it would have done below. */
export function RuleEditor({ draft, refused, onChange, onSave, onCancel }: RuleEditorProps) {
  const { rule, json, isNew } = draft
  const problem = draft.problem ?? refused
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    onSave()
  }
  return (
    <section aria-label={t('Rule')}>
      <form class="rule-editor" onSubmit={submit}>
        <div class="card-head">
          <h2>{isNew ? t('New rule') : t('Edit rule {id}', { id: rule?.id ?? '' })}</h2>
        </div>
        <div class="side-by-side">
          <div>
            {rule === undefined ? (
              <p class="empty">{t('This rule can only be edited as JSON.')}</p>
            ) : (
              <RuleFields rule={rule} isNew={isNew} onChange={(changed) => onChange(draftOf(changed, isNew))} />
            )}
          </div>
          <div>
            <label class="json">
              {t('As JSON, with every field')}
              <textarea
                name="json"
                spellcheck={false}
                value={json}
                onInput={(event) => onChange(draftOfJson(event.currentTarget.value, isNew))}
              />
            </label>
            <DryRun draft={draft} />
          </div>
        </div>
        <div class="save-bar">
          {problem !== undefined && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
          <p class="buttons">
            <button type="submit" class="primary">
              {t('Save rule')}
            </button>
            <button type="button" onClick={onCancel}>
              {t('Cancel')}
            </button>
          </p>
        </div>
      </form>
    </section>
  )
}
