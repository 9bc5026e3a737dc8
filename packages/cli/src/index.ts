export { type Command, type CommandEntry, type CommandIo, UsageError } from './command/command.ts'
export { runCommand } from './command/run-command.ts'
export { commands } from './commands/index.ts'
export { defaultDataFolder, type Running, readRunning } from './up/running-file.ts'
