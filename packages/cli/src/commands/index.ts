import type { Command } from '../command/command.ts'
import { drill } from './drill.ts'
import { ids } from './ids/ids.ts'
import { off, on } from './switch.ts'
import { top } from './top.ts'
import { up } from './up.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [up, top, drill, off, on, ids]
import { completionCommand } from './completion.ts'
import { find } from './find/find.ts'
import { manCommand } from './man.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [find, completionCommand(() => commands), manCommand(() => commands)]
import { limitsCommand } from './limits.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [limitsCommand]
