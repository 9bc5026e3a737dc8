import { type ApiError, FirebreakError, ReportRefusedError } from '@firebreak/core'
import { RuleInvalidError } from '@firebreak/core/rules'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ApiProblem, StoreCallError } from '../errors.ts'

const refusalStatus = { unparsable: 400, version: 400, expired: 422, 'too-large': 413 } as const

/** Answers every error as `{code, message, field}`. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, body } = describe(error)
  if (status >= 500) request.log.error({ err: error }, 'a request failed')
  reply.code(status).send(body)
}

function describe(error: unknown): { status: number; body: ApiError } {
  if (error instanceof ApiProblem) return answer(error.statusCode, error.code, error.message, error.field)
  if (error instanceof RuleInvalidError) return answer(400, error.code, error.message, error.field)
  if (error instanceof ReportRefusedError) {
    const field = error.position === undefined ? undefined : `line ${error.position}`
    return answer(refusalStatus[error.refusal], error.code, error.message, field)
  }
  if (error instanceof StoreCallError) return answer(503, error.code, error.message)
  const { statusCode = 500, message } = error as FastifyError
  if (statusCode < 500) return answer(statusCode, 'FB_INPUT_INVALID', message)
  // Details of an internal failure are only logged; the caller learns that it happened.
  return answer(500, error instanceof FirebreakError ? error.code : 'FB_INTERNAL', 'the hub failed; its log says why')
}

function answer(status: number, code: string, message: string, field?: string): { status: number; body: ApiError } {
  return { status, body: { code, message, ...(field !== undefined && { field }) } }
}
