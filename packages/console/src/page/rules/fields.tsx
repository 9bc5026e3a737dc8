import { dateTime } from '../format/format.ts'
import { t } from '../text/text.ts'

interface FieldProps<T> {
  readonly label: string
  readonly name: string
  readonly onChange: (value: T) => void
  readonly isOptional?: boolean
}

/** A number; an optional one may be empty, which is undefined. */
export function NumberField(
  props: FieldProps<number | undefined> & {
    readonly value: number | undefined
    readonly min?: number
    readonly max?: number
    readonly isReadOnly?: boolean
  },
) {
  const { label, name, value, min, max, isOptional = false, isReadOnly = false, onChange } = props
  return (
    <label>
      {label}
      <input
        name={name}
        type="number"
        step="any"
        min={min}
        max={max}
        required={!isOptional}
        readOnly={isReadOnly}
        placeholder={isOptional ? t('none') : undefined}
        value={value ?? ''}
        onInput={({ currentTarget }) => {
          if (currentTarget.value !== '') onChange(Number(currentTarget.value))
          else if (isOptional) onChange(undefined)
        }}
      />
    </label>
  )
}

/** A moment, by the reader's clock; empty: none. */
export function TimeField({
  label,
  name,
  value,
  onChange,
}: FieldProps<number | undefined> & { readonly value: number | undefined }) {
  return (
    <label>
      {label}
      <input
        name={name}
        type="datetime-local"
        step="1"
        value={value === undefined ? '' : dateTime(value).replace(' ', 'T')}
        onChange={({ currentTarget }) =>
          onChange(currentTarget.value === '' ? undefined : new Date(currentTarget.value).getTime())
        }
      />
    </label>
  )
}

export function TextField(
  props: FieldProps<string> & { readonly value: string; readonly isReadOnly?: boolean; readonly hasLines?: boolean },
) {
  const { label, name, value, isReadOnly = false, hasLines = false, isOptional = false, onChange } = props
  const common = { name, value, readOnly: isReadOnly, required: !isOptional, spellcheck: false } as const
  if (hasLines) {
    return (
      <label>
        {label}
        <textarea {...common} class="lines" onInput={(event) => onChange(event.currentTarget.value)} />
      </label>
    )
  }
  return (
    <label>
      {label}
      <input {...common} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  )
}

export function ChoiceField<T extends string>(
  props: FieldProps<T> & { readonly value: T | undefined; readonly choices: readonly T[] },
) {
  const { label, name, value, choices, onChange } = props
  return (
    <label>
      {label}
      <select name={name} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    </label>
  )
}

export function CheckField(props: FieldProps<boolean> & { readonly value: boolean }) {
  const { label, name, value, onChange } = props
  return (
    <label class="check">
      <input type="checkbox" name={name} checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  )
}
