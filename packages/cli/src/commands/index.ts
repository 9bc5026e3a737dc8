import type { Command } from '../command/command.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = []
