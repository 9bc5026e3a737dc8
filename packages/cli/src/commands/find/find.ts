import { didYouMean } from '@firebreak/core'
import { type Command, UsageError } from '../../command/command.ts'
import { parseFlags } from '../../flags/flag-table.ts'
import { runFindAdvise } from './find-advise.ts'
import { runFindBig } from './find-big.ts'
import { findFlags } from './find-flags.ts'
import { findHelp } from './find-help.ts'
import { runFindHot } from './find-hot.ts'
import { checkOutput, type FindRun, newRun } from './find-run.ts'
import { runFindSlots } from './find-slots.ts'

const subcommands: Readonly<Record<string, (run: FindRun) => Promise<number>>> = {
  hot: runFindHot,
  big: runFindBig,
  slots: runFindSlots,
  advise: runFindAdvise,
}

/** `firebreak find` */
export const find: Command = {
  help: findHelp,
  subcommands: Object.keys(subcommands),
  flags: [...new Set(Object.values(findFlags).flatMap((specs) => specs.map(({ name }) => name)))],
  async run(args, io) {
    const [name, ...rest] = args
    const work = name === undefined ? undefined : subcommands[name]
    if (work === undefined) {
      const close = name === undefined ? undefined : didYouMean(name, Object.keys(subcommands))
      throw new UsageError(
        name === undefined
          ? 'say what to find: hot, big, slots or advise'
          : `unknown command "find ${name}"${close === undefined ? '' : `; did you mean "find ${close}"?`}`,
      )
    }
    const { values, positionals } = parseFlags(findFlags[name!]!, rest, io)
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not an option of "find ${name}"`)
    checkOutput(values)
    const run = newRun(values, io)
    try {
      return await work(run)
    } finally {
      run.bar.clear()
    }
  },
}
