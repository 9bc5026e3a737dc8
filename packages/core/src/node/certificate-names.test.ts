import type { PeerCertificate } from 'node:tls'
import { expect, test } from 'vitest'
import { certificateNames } from './certificate-names.ts'

const namesOf = (subjectaltname: string, CN: unknown = 'web') =>
  certificateNames({ subject: { CN } as PeerCertificate['subject'], subjectaltname })

test('a certificate has the names of its subject and its alternative names', () => {
  expect(namesOf('DNS:web.internal, URI:spiffe://shop/web, IP Address:10.0.0.1')).toEqual([
    'web',
    'web.internal',
    'spiffe://shop/web',
    '10.0.0.1',
  ])
  expect(certificateNames({})).toEqual([])
})

test('a name with commas and quotes is one name, whatever it contains', () => {
  expect(namesOf('DNS:"x, DNS:admin, DNS:y", URI:a')).toEqual(['web', 'x, DNS:admin, DNS:y', 'a'])
  expect(namesOf('DNS:"x\\", DNS:admin"')).toEqual(['web', 'x", DNS:admin'])
  expect(namesOf('DNS:a', ['admin', 'web'])).toEqual(['a'])
})
