import type { ListedCommand } from './command.ts'

/** The manual as troff, generated from the registry: `firebreak man | man -l -`. */
export function manPage(commands: readonly ListedCommand[], version: string): string {
  const parts = [
    `.TH FIREBREAK 1 "" "firebreak ${troff(version)}" "Firebreak"`,
    '.SH NAME',
    'firebreak \\- hot-key protection for Redis',
    '.SH SYNOPSIS',
    '.B firebreak',
    '.I COMMAND',
    '[\\fIOPTIONS\\fR]',
    '.SH DESCRIPTION',
    'Firebreak finds hot and big keys, tells every client about hot ones, and handles them with caches, copies or limits.',
    '.SH COMMANDS',
    ...commands.flatMap(({ name, summary }) => ['.TP', `.B ${troff(name)}`, troff(summary)]),
    ...commands.flatMap(({ name, help }) => [
      `.SH "FIREBREAK ${troff(name.toUpperCase())}"`,
      '.nf',
      ...help.trimEnd().split('\n').map(troff),
      '.fi',
    ]),
    '.SH EXIT STATUS',
    ...[
      ['0', 'done'],
      ['1', 'failed'],
      ['2', 'the command line was wrong'],
      ['3', 'a condition of --fail-on was met'],
    ].flatMap(([code, meaning]) => ['.TP', `.B ${code}`, troff(meaning!)]),
  ]
  return `${parts.join('\n')}\n`
}

/** Escapes text for troff: no escapes, no request at the start of a line. */
function troff(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq')
  return safe.startsWith('.') ? `\\&${safe}` : safe
}
