import { type Command, type CommandEntry, loadAll, UsageError } from '../command/command.ts'
import { completionScript, type Shell, shells } from '../command/completion-script.ts'

/** `firebreak completion`, for the commands of its own registry. */
export function completionCommand(registry: readonly CommandEntry[]): Command {
  return {
    subcommands: shells,
    help: `A script that completes firebreak's commands and flags in a shell.

Examples:
  source <(firebreak completion bash)                                   now, in this shell
  firebreak completion bash > /etc/bash_completion.d/firebreak
  firebreak completion zsh > "\${fpath[1]}/_firebreak"
  firebreak completion fish > ~/.config/fish/completions/firebreak.fish

Usage: firebreak completion bash|zsh|fish
`,
    async run([shell], io) {
      if (!shells.includes(shell as Shell)) {
        throw new UsageError(`"${shell ?? ''}" is not a supported shell; use bash, zsh or fish`)
      }
      io.stdout.write(completionScript(shell as Shell, await loadAll(registry)))
      return 0
    },
  }
}
