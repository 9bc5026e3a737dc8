import type { Command } from '../command/command.ts'
import { completionCommand } from './completion.ts'
import { drill } from './drill.ts'
import { find } from './find/find.ts'
import { hub } from './hub.ts'
import { ids } from './ids/ids.ts'
import { limitsCommand } from './limits.ts'
import { manCommand } from './man.ts'
import { off, on } from './switch.ts'
import { top } from './top.ts'
import { up } from './up.ts'

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  up,
  hub,
  top,
  find,
  drill,
  off,
  on,
  limitsCommand,
  ids,
  completionCommand(() => commands),
  manCommand(() => commands),
]
