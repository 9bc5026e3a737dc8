// A reporter of `node --test`, as lines like those of the others.
module.exports = report

async function* report(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (data.details?.type === 'suite') continue
    const outcome = data.skip ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed'
    const message = data.details?.error?.cause?.stack ?? data.details?.error?.message
    yield `${JSON.stringify({ test: data.name, outcome, ...(message && { message: String(message).slice(0, 2000) }) })}\n`
  }
  yield '{"end":true}\n'
}
