import { expect, test } from 'vitest'
import { kubernetesVariables } from './kubernetes-variables.ts'
import { resolveSettings } from './resolve-settings.ts'
import { portNumber, type SettingTable, text } from './setting.ts'

/** The variables that the kubelet gives to a container next to a service. */
const serviceVariables = (service: string, port: number) => ({
  [`${service}_SERVICE_HOST`]: '10.96.0.17',
  [`${service}_SERVICE_PORT`]: String(port),
  [`${service}_SERVICE_PORT_HTTP`]: String(port),
  [`${service}_PORT`]: `tcp://10.96.0.17:${port}`,
  [`${service}_PORT_${port}_TCP`]: `tcp://10.96.0.17:${port}`,
  [`${service}_PORT_${port}_TCP_PROTO`]: 'tcp',
  [`${service}_PORT_${port}_TCP_PORT`]: String(port),
  [`${service}_PORT_${port}_TCP_ADDR`]: '10.96.0.17',
})

const table: SettingTable = {
  command: 'hub',
  prefix: 'FIREBREAK_HUB_',
  settings: [
    { name: 'port', type: portNumber, default: '7070', summary: 'the port' },
    { name: 'serviceHost', type: text, default: 'none', summary: 'named like a variable of Kubernetes' },
  ],
}
const resolve = (env: Record<string, string>) =>
  resolveSettings(table, { env, readFile: () => ({}), failure: (_, message) => new Error(message) }).values

test('variables that Kubernetes creates for a service are not settings', () => {
  expect(resolve(serviceVariables('FIREBREAK_HUB', 7070))).toEqual({})
  expect(resolve({ ...serviceVariables('FIREBREAK_HUB_OLD', 7070), FIREBREAK_HUB_PORT: '7071' })).toEqual({
    port: 7071,
  })
})

test('an explicit port counts next to those variables', () => {
  const env = { ...serviceVariables('FIREBREAK_HUB', 7070), FIREBREAK_HUB_PORT: '7071' }
  expect(resolve(env)).toEqual({ port: 7071 })
})

test('the same names without a service are settings, known or refused', () => {
  expect(resolve({ FIREBREAK_HUB_SERVICE_HOST: 'mine' })).toEqual({ serviceHost: 'mine' })
  expect(() => resolve({ FIREBREAK_HUB_PORT: 'tcp://10.96.0.17:7070' })).toThrow('FIREBREAK_HUB_PORT')
  expect(() => resolve({ FIREBREAK_HUB_SERVICE_PORT: '1' })).toThrow('unknown setting FIREBREAK_HUB_SERVICE_PORT')
})

test('a variable that no service explains is still refused', () => {
  const env = { ...serviceVariables('FIREBREAK_HUB', 7070), FIREBREAK_HUB_PROT: '7071' }
  expect(() => resolve(env)).toThrow('unknown setting FIREBREAK_HUB_PROT; did you mean FIREBREAK_HUB_PORT?')
})

test('without Kubernetes’ variables, nothing is attributed to Kubernetes', () => {
  expect([...kubernetesVariables({ PATH: '/bin', FIREBREAK_HUB_PORT: '7070', A_SERVICE_HOST: undefined })]).toEqual([])
})
