import type { Finding } from '@firebreak/find'
import type { FastifyInstance } from 'fastify'
import { parseFinding } from './finding-schema.ts'
import { redactFinding } from './redact-finding.ts'

/** How many findings a hub keeps, and who is told about new ones. */
export interface FindingRoutesOptions {
  /** Beyond this, older ones are dropped. @default 100 */
  readonly maxFindings?: number
  /** Bytes of one finding. @default 5 MiB */
  readonly maxBytes?: number
  /** A key's name in answers. @default its name */
  readonly outside?: (key: string) => string
  /** Called with each new finding, to push it to open consoles. */
  readonly onFinding?: (finding: Finding) => void
}

/**
 * The hub's side of `firebreak find --hub`: accepts findings, keeps the latest in memory, and lists them for the
 * console, newest first. A finding that is resent replaces itself.
 */
export async function findingRoutes(app: FastifyInstance, options: FindingRoutesOptions = {}): Promise<void> {
  const { maxFindings = 100, maxBytes = 5 << 20, onFinding, outside } = options
  const findings = new Map<string, Finding>()

  app.post('/v1/findings', { bodyLimit: maxBytes }, async (request, reply) => {
    const parsed = parseFinding(request.body)
    if ('problem' in parsed) {
      return reply.code(400).send({ code: 'FB_FINDING_INVALID', message: `this is not a finding: ${parsed.problem}` })
    }
    const finding = outside === undefined ? parsed.finding : redactFinding(parsed.finding, outside)
    const isNew = !findings.delete(finding.id)
    findings.set(finding.id, finding)
    for (const oldest of findings.keys()) {
      if (findings.size <= maxFindings) break
      findings.delete(oldest)
    }
    if (isNew) onFinding?.(finding)
    return reply.code(isNew ? 201 : 200).send({ id: finding.id })
  })

  app.get<{ Querystring: { kind?: string; limit?: string } }>('/v1/findings', async (request) => {
    const { kind, limit } = request.query
    const newest = [...findings.values()].reverse().filter((finding) => kind === undefined || finding.kind === kind)
    return { findings: newest.slice(0, Math.max(0, Number(limit ?? maxFindings)) || maxFindings) }
  })

  app.get<{ Params: { id: string } }>('/v1/findings/:id', async (request, reply) => {
    const finding = findings.get(request.params.id)
    if (finding !== undefined) return finding
    return reply.code(404).send({ code: 'FB_FINDING_UNKNOWN', message: `unknown finding ${request.params.id}` })
  })
}
