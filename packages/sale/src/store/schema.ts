import { readFileSync } from 'node:fs'

/** The statements of a `.sql` file next to this module. */
export function readSchema(name: 'sqlite' | 'postgres' | 'mariadb'): string[] {
  const text = readFileSync(new URL(`./${name}.sql`, import.meta.url), 'utf8')
  return text
    .split(/;\s*\n/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}
