import type { Command } from '../command/command.ts'
import { completionCommand } from './completion.ts'
import { find } from './find/find.ts'
import { manCommand } from './man.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [find, completionCommand(() => commands), manCommand(() => commands)]
