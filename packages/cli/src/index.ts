export { type Command, type CommandIo, UsageError } from './command/command.ts'
export { runCommand } from './command/run-command.ts'
export { commands } from './commands/index.ts'
