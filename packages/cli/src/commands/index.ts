import type { Command } from '../command/command.ts'
import { limitsCommand } from './limits.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [limitsCommand]
