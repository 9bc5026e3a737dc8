import type { PeerCertificate } from 'node:tls'

/**
 * The names in a certificate: its subject and all alternative names. Node writes these as `DNS:a, URI:b`, and one that
 * contains a comma or a quote as a JSON string, so that nobody can smuggle a second name into the first.
 */
export function certificateNames({ subject, subjectaltname = '' }: Partial<PeerCertificate>): string[] {
  const alternatives = [...subjectaltname.matchAll(/(?:^|, )[\w ]+:("(?:[^"\\]|\\.)*"|[^,]*)/g)].map(([, text]) =>
    unquoted(text!),
  )
  // A subject may have several common names, which gives a list: then none of them counts.
  const name = subject?.CN as unknown
  return [name, ...alternatives].filter((one): one is string => typeof one === 'string' && one !== '')
}

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text
  try {
    return JSON.parse(text) as string
  } catch {
    return ''
  }
}
