import { readFile } from 'node:fs/promises'
import { type Advice, advise, cutOver, type Finding, findBigByScan, splitKey, unescapeKey } from '@firebreak/find'
import { UsageError } from '../../command/command.ts'
import { connectionOf } from '../../connect/connection-flags.ts'
import { byteCount, wholeNumber } from '../../flags/quantities.ts'
import { formatCount } from '../../output/format.ts'
import { outputFormat, renderCsv, renderNdjson } from '../../output/records.ts'
import { type FindRun, topOf, typeOf } from './find-run.ts'

/** `firebreak find advise` */
export async function runFindAdvise(run: FindRun): Promise<number> {
  const { values } = run
  if (values.has('apply')) return apply(run)
  const findings = values.has('from') ? await readFindings(run, values.get('from')!) : [await lookNow(run)]
  const advice = advise(findings, {
    elements: wholeNumber('max-elements', values.get('max-elements') ?? '10000', 1, Number.MAX_SAFE_INTEGER),
    bytes: byteCount('max-size', values.get('max-size') ?? '10mb'),
  })
  run.bar.clear()
  print(run, advice)
  return 0
}

async function lookNow({ values, io, signal, progress }: FindRun): Promise<Finding> {
  const connection = await connectionOf(values, io)
  const match = values.get('match')
  const type = typeOf(values)
  return findBigByScan({
    ...connection,
    ...(match === undefined ? {} : { match }),
    ...(type === undefined ? {} : { type }),
    top: topOf(values),
    looksUpTtl: true,
    signal,
    progress,
  })
}

/** Findings as printed by `--json`: one object, several in a row, or an array. */
async function readFindings({ io }: FindRun, file: string): Promise<Finding[]> {
  let text = ''
  if (file === '-') for await (const chunk of io.stdin) text += String(chunk)
  else text = await readFile(file, 'utf8')
  let parsed: unknown
  try {
    parsed = JSON.parse(text.trim().startsWith('[') ? text : `[${text.trim().replace(/\}\s*\n\s*\{/g, '},{')}]`)
  } catch (error) {
    throw new UsageError(`--from ${file} is not JSON: ${(error as Error).message}`)
  }
  const findings = parsed as Finding[]
  if (!findings.every((finding) => finding?.version === 1 && Array.isArray(finding.keys))) {
    throw new UsageError(`--from ${file} contains no findings; write them with "firebreak find … --json"`)
  }
  return findings
}

function print({ io, values }: FindRun, advice: readonly Advice[]): void {
  const format = outputFormat(values)
  if (format === 'json') io.stdout.write(`${JSON.stringify(advice, null, 2)}\n`)
  else if (format === 'ndjson') io.stdout.write(renderNdjson(advice))
  else if (format === 'csv') {
    io.stdout.write(renderCsv(advice.map(({ commands, ...rest }) => ({ ...rest, commands: commands.join('; ') }))))
  } else if (advice.length === 0) io.stdout.write('Nothing to do: no key is too big, too hot or too many.\n')
  else io.stdout.write(advice.map(paragraph).join('\n'))
}

function paragraph(advice: Advice, index: number): string {
  const commands = advice.commands.map((command) => `       ${command}\n`).join('')
  return `${String(index + 1).padStart(3)}. ${advice.severity.toUpperCase()}  ${advice.subject}\n     ${advice.problem}\n     → ${advice.remedy}\n${commands}`
}

/** The only place where a finder changes something: a split, or its end. */
async function apply(run: FindRun): Promise<number> {
  const { values, io, signal, progress } = run
  const what = values.get('apply')!
  const name = values.get('key')
  if (what !== 'split' && what !== 'cut-over') {
    throw new UsageError(`--apply is "${what}"; it must be split or cut-over`)
  }
  if (name === undefined) throw new UsageError(`--apply ${what} needs --key`)
  const segments = values.get('segments')
  const throttle = values.get('throttle')
  const options = {
    ...(await connectionOf(values, io)),
    key: unescapeKey(name),
    batch: wholeNumber('batch', values.get('batch') ?? '1000', 1, 1_000_000),
    ...(throttle === undefined ? {} : { elementsPerSecond: wholeNumber('throttle', throttle, 1, 100_000_000) }),
    signal,
    progress,
  }
  const result =
    what === 'split'
      ? await splitKey({
          ...options,
          ...(segments === undefined ? {} : { segments: wholeNumber('segments', segments, 2, 100_000) }),
        })
      : await cutOver(options)
  run.bar.clear()
  const { plan } = result
  if (outputFormat(values) !== 'table') {
    const { key: _key, ...shown } = plan
    io.stdout.write(
      `${JSON.stringify({ key: name, ...shown, isComplete: result.isComplete, corrected: result.corrected })}\n`,
    )
  } else if (!result.isComplete) {
    io.stdout.write(`${formatCount(plan.copied)} elements copied. Run the same command again to continue.\n`)
  } else if (plan.state === 'cut-over') {
    io.stdout.write(`"${name}" is cut over: ${plan.segments} segments remain, and the plan in "${name}:segments".\n`)
  } else {
    io.stdout.write(
      `"${name}" is copied into ${plan.segments} segments, "${name}:0" to "${name}:${plan.segments - 1}", and compared.\n` +
        `The original is unchanged. Once readers and writers use the segments:\n  firebreak find advise --apply cut-over --key ${name}\n`,
    )
  }
  return result.isComplete ? 0 : 1
}
