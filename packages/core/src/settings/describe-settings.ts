import {
  fileSetting,
  flagOf,
  placeholderOf,
  type Setting,
  type SettingTable,
  secretFilesOf,
  variableOf,
  variablesOf,
} from './setting.ts'

/** The options of a command's help text, `--config` first. */
export function settingsHelp(table: SettingTable): string {
  const file: Setting = {
    name: fileSetting,
    type: { kind: 'text' },
    placeholder: 'FILE',
    default: 'none',
    summary: 'settings as YAML or JSON, with the names below in camelCase',
  }
  return [file, ...table.settings]
    .map((setting) => {
      const value = placeholderOf(setting)
      const head = `  --${flagOf(setting.name)}${value === undefined ? '' : ` ${value}`}`
      const again = setting.type.kind === 'lines' ? '; may be repeated; one per line in the variable' : ''
      const variables = [...variablesOf(table, setting), ...secretFilesOf(table, setting)]
      const extras = `env ${variables.join(', ')}; default ${setting.default}`
      return `${head}\n      ${setting.summary}${again} (${extras})`
    })
    .join('\n')
}

/** The rows of the reference page, as Markdown. */
export function settingsReference(table: SettingTable): string {
  const rows = table.settings.map((setting) => {
    const { name, summary } = setting
    const cells = [`\`${name}\``, `\`--${flagOf(name)}\``, `\`${variableOf(table, name)}\``, setting.default, summary]
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  })
  return ['| setting | flag | variable | default | what it does |', '|---|---|---|---|---|', ...rows].join('\n')
}

/** A JSON Schema of the settings file, for editors. */
export function settingsSchema(table: SettingTable): object {
  const properties = Object.fromEntries(
    table.settings.map((setting) => [setting.name, { description: describe(setting), ...schemaOf(setting) }]),
  )
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `Settings of firebreak ${table.command}`,
    type: 'object',
    additionalProperties: false,
    properties,
  }
}

const describe = ({ summary, default: otherwise }: Setting): string => `${summary} (default ${otherwise})`

function schemaOf({ type }: Setting): object {
  switch (type.kind) {
    case 'text':
      return { type: 'string', minLength: 1 }
    case 'number':
      return { type: 'integer', minimum: type.min, ...(type.max < Number.MAX_SAFE_INTEGER && { maximum: type.max }) }
    case 'choice':
      return { enum: type.choices }
    case 'switch':
      return { type: 'boolean' }
    case 'list':
    case 'lines':
      return { type: 'array', items: { type: 'string', minLength: 1 } }
    case 'pairs':
      return { type: 'object', additionalProperties: { type: 'string' } }
    case 'objects':
      return { type: ['array', 'string'], items: { type: 'object' } }
  }
}
