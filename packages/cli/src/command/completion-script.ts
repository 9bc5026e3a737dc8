import type { ListedCommand } from './command.ts'

/** The supported shells. */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** A completion script generated from the registry: commands, subcommands, flags. */
export function completionScript(shell: Shell, commands: readonly ListedCommand[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands)
    case 'zsh':
      return zshScript(commands)
    case 'fish':
      return fishScript(commands)
  }
}

function wordsOf({ subcommands = [], flags = [] }: ListedCommand): string[] {
  return [...subcommands, ...flags.map((flag) => `--${flag}`), '--help']
}

function bashScript(commands: readonly ListedCommand[]): string {
  const cases = commands.map((command) => `    ${command.name}) words="${wordsOf(command).join(' ')}" ;;`)
  return `# bash completion of firebreak
_firebreak() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="help ${commands.map(({ name }) => name).join(' ')}"
  else
    case "\${COMP_WORDS[1]}" in
    help) words="${commands.map(({ name }) => name).join(' ')}" ;;
${cases.join('\n')}
    *) words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  # A value that is a file, as after --rdb.
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -F _firebreak firebreak
`
}

function zshScript(commands: readonly ListedCommand[]): string {
  const quote = (text: string) => text.replaceAll("'", "'\\''").replaceAll(':', '\\:')
  const list = commands.map(({ name, summary }) => `    '${name}:${quote(summary)}'`)
  const cases = commands.map((command) => `    ${command.name}) choices=(${wordsOf(command).join(' ')}) ;;`)
  return `#compdef firebreak
# zsh completion of firebreak
_firebreak() {
  local -a commands choices
  commands=(
${list.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case $words[2] in
${cases.join('\n')}
  esac
  compadd -a choices || _files
}
compdef _firebreak firebreak
`
}

function fishScript(commands: readonly ListedCommand[]): string {
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = commands.flatMap((command) => [
    `complete -c firebreak -n __fish_use_subcommand -a ${command.name} -d ${quote(command.summary)}`,
    ...(command.subcommands ?? []).map(
      (word) => `complete -c firebreak -n '__fish_seen_subcommand_from ${command.name}' -a ${word}`,
    ),
    ...(command.flags ?? []).map(
      (flag) => `complete -c firebreak -n '__fish_seen_subcommand_from ${command.name}' -l ${flag}`,
    ),
  ])
  return `# fish completion of firebreak\n${lines.join('\n')}\n`
}
