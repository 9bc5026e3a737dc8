import { runSeeds } from '@firebreak/testkit'
import { outcomeText, type Totals } from './account.ts'
import { parseOptions, type SimulateOptions } from './command-line.ts'
import { models } from './models.ts'
import { huntMutants } from './mutants/hunt.ts'
import { mutants as fleetMutants, type Mutant } from './mutants/mutants.ts'
import { roomMutants } from './mutants/room-mutants.ts'

/** Plays seeds and reports each; returns the totals. */
async function play({ model, seeds, faults, isHasty, isJson }: SimulateOptions): Promise<Totals> {
  const totals: Totals = { seeds: 0, failures: 0, simulatedSeconds: 0, faults: 0, calls: 0 }
  const given = faults === undefined ? {} : { schedule: () => faults }
  for await (const outcome of runSeeds({ ...models[model], ...given, seeds, shrinks: !isHasty })) {
    totals.seeds++
    totals.simulatedSeconds += outcome.simulatedMs / 1000
    totals.faults += outcome.faults
    totals.calls += outcome.calls
    if (outcome.failure !== undefined) totals.failures++
    // With --json, lines for people go to stderr.
    const out = isJson ? process.stderr : process.stdout
    if (!isJson || isHasty || outcome.failure !== undefined) out.write(`${outcomeText(model, outcome)}\n`)
    if (isHasty && outcome.failure !== undefined) break
  }
  totals.simulatedSeconds = Math.round(totals.simulatedSeconds)
  return totals
}

/** The bugs to plant: those of the named model, those with the given words in their name, or all. */
function mutantsOf({ model, namesModel, only }: SimulateOptions): Mutant[] {
  const all = [...fleetMutants, ...roomMutants].filter(({ name }) => name.includes(only))
  return namesModel ? all.filter((mutant) => (mutant.model ?? 'fleet') === model) : all
}

async function main(): Promise<number> {
  let options: SimulateOptions
  try {
    options = parseOptions(process.argv.slice(2))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    return 2
  }
  if (options.runsMutants) {
    const chosen = mutantsOf(options)
    if (chosen.length === 0) {
      process.stderr.write(`No planted fault has "${options.only}" in its name.\n`)
      return 2
    }
    const { mutants, found, worstSeeds } = await huntMutants(chosen)
    const line = { mutants, found, worstSeeds }
    process.stdout.write(
      options.isJson
        ? `${JSON.stringify(line)}\n`
        : `${found} of ${mutants} found, the slowest in ${worstSeeds} seeds\n`,
    )
    return found === mutants ? 0 : 1
  }
  const totals = await play(options)
  if (options.isJson) process.stdout.write(`${JSON.stringify(totals)}\n`)
  else if (totals.seeds > 1) {
    const { seeds, failures, simulatedSeconds, faults, calls } = totals
    process.stdout.write(
      `${seeds} seeds, ${failures} failures, ${simulatedSeconds} simulated s, ${faults} faults, ${calls} calls\n`,
    )
  }
  return totals.failures === 0 ? 0 : 1
}

process.exitCode = await main()
