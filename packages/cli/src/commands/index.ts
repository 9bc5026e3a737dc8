import type { Command } from '../command/command.ts'
import { ids } from './ids/ids.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [ids]
