import { createHmac } from 'node:crypto'
import type { AlertShape } from '@firebreak/core'
import type { AlarmNotice } from './alarm-webhooks.ts'
import { isOfFleet } from './fleet-notices.ts'

/** Where a notice goes and how it is written. */
export interface AlertTarget {
  readonly shape: AlertShape
  readonly url: string
  /** PagerDuty's routing key; the signing secret of DingTalk, Feishu and plain webhooks. */
  readonly secret?: string | undefined
}

/** One POST. */
export interface AlertRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export const pagerDutyUrl = 'https://events.pagerduty.com/v2/enqueue'

/** A notice as its receiver expects it; some receivers' signatures include the time. */
export function alertRequest(target: AlertTarget, notice: AlarmNotice): AlertRequest {
  const { shape, url, secret } = target
  const json = (body: unknown, headers: Record<string, string> = {}, to = url): AlertRequest => ({
    url: to,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const { title, lines } = textOf(notice)
  switch (shape) {
    case 'plain':
      return json(notice, signature(secret, JSON.stringify(notice)))
    case 'slack':
      return json({ text: [`*${slackText(title)}*`, ...lines.map(slackText)].join('\n') })
    case 'dingtalk':
      return json(
        { msgtype: 'markdown', markdown: { title, text: [`### ${title}`, ...lines].join('\n\n') } },
        {},
        secret === undefined ? url : dingTalkUrl(url, secret, notice.at),
      )
    case 'feishu':
      return json({
        ...(secret !== undefined && feishuSignature(secret, notice.at)),
        msg_type: 'text',
        content: { text: [title, ...lines].join('\n') },
      })
    case 'teams':
      return json(teamsCard(title, lines, notice))
    case 'pagerduty':
      return json(pagerDutyEvent(notice, title, secret ?? ''))
  }
}

/** Why a response with status 200 is nevertheless a refusal; undefined if it is not. */
export function refusalIn(shape: AlertShape, body: string): string | undefined {
  if (shape !== 'dingtalk' && shape !== 'feishu') return undefined
  try {
    const answer = JSON.parse(body) as Record<string, unknown>
    const code = answer['errcode'] ?? answer['code'] ?? answer['StatusCode'] ?? 0
    if (code === 0) return undefined
    return `it answered ${String(code)}: ${String(answer['errmsg'] ?? answer['msg'] ?? '').slice(0, 200)}`
  } catch {
    return 'its answer is not JSON'
  }
}

/** The receiver computes the same HMAC-SHA256 of the body, whose `at` reveals a replayed notice. */
export function signature(secret: string | undefined, body: string): Record<string, string> {
  if (secret === undefined) return {}
  return { 'firebreak-signature': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}` }
}

function textOf({ event, hubId, at, alarm }: AlarmNotice): {
  readonly title: string
  readonly lines: readonly string[]
} {
  const word = event === 'cleared' ? 'ended' : event === 'test' ? 'test' : alarm.severity
  return {
    title: `Firebreak ${word}: ${alarm.id}`,
    lines: [alarm.cause, alarm.retry, `${hubId}, ${new Date(at).toISOString()}`].filter((line) => line !== ''),
  }
}

/** Slack's own escapes; a key's name must not become a link or a mention. */
function slackText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function dingTalkUrl(url: string, secret: string, now: number): string {
  const timestamp = String(Math.floor(now))
  const sign = createHmac('sha256', secret).update(`${timestamp}\n${secret}`).digest('base64')
  const signed = new URL(url)
  signed.searchParams.set('timestamp', timestamp)
  signed.searchParams.set('sign', sign)
  return signed.href
}

function feishuSignature(secret: string, now: number): { readonly timestamp: string; readonly sign: string } {
  const timestamp = String(Math.floor(now / 1000))
  return { timestamp, sign: createHmac('sha256', `${timestamp}\n${secret}`).digest('base64') }
}

function teamsCard(title: string, lines: readonly string[], { event, alarm }: AlarmNotice): object {
  const color = event === 'cleared' ? 'good' : alarm.severity === 'critical' ? 'attention' : 'warning'
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            { type: 'TextBlock', text: title, weight: 'bolder', size: 'medium', color, wrap: true },
            ...lines.map((text) => ({ type: 'TextBlock', text, wrap: true })),
          ],
        },
      },
    ],
  }
}

/** The same alarm of the same hub, or of the fleet, is one incident, resolved when the alarm ends. */
function pagerDutyEvent({ event, hubId, at, alarm }: AlarmNotice, title: string, routingKey: string): object {
  return {
    routing_key: routingKey,
    event_action: event === 'cleared' ? 'resolve' : 'trigger',
    dedup_key: `firebreak/${isOfFleet(alarm.id) ? 'fleet' : hubId}/${alarm.id}`,
    ...(event !== 'cleared' && {
      payload: {
        summary: `${title}: ${alarm.cause}`.slice(0, 1024),
        source: hubId,
        severity: event === 'test' ? 'info' : alarm.severity,
        timestamp: new Date(at).toISOString(),
        custom_details: { retry: alarm.retry, since: alarm.since, count: alarm.count },
      },
    }),
  }
}
