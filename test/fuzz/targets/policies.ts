import { CompiledPolicy, parsePolicy, parsePolicyText, writePolicyDocument } from '@firebreak/limits/policy'
import type { FuzzTarget } from '../target.ts'
import { yamlMicrosPerByte } from './settings.ts'

const policyText = `[options]
timeZone : Asia/Shanghai
[dicts]
vip : vip.dat
[rules]
rule : [count] [user=+; ip=10.0.0.0/8,1-100{~}] [time=60; count=10; erase1=1] [result=2; return=101]
rule : [base] [user @ vip; level>3; level<9] [time=86400; count=5; base=3] [result=3; return=102; shadow=1]
rule : [direct] [act!=read; user !@ vip] [] [result=2; return=103]
[result]
3 : {"Ret_type":3,"Str_reason":"slow"}
`
const readText = () => '1\n2\n10.0.0.1\n# none\n'

const asDocument = (format: 'yaml' | 'json') =>
  writePolicyDocument(parsePolicyText(policyText, 'policy', readText), format)

/** A policy as received over HTTP or from a file, in all its forms; an accepted one must also decide. */
export const policyTarget: FuzzTarget = {
  name: 'policy',
  cpuMicrosPerByte: yamlMicrosPerByte,
  jsonAt: (input) => (input[0] === 0x7b ? 0 : -1),
  words: [
    '[rules]\n',
    '[',
    ']',
    '; ',
    'rule : ',
    '- ',
    ': ',
    '&a ',
    '*a',
    '<<: *a',
    '!!set ',
    '? ',
    '{~}',
    '=+',
    '\n',
    '  ',
    '!@',
    '[[[',
    '{{',
    '"',
    '---\n',
    '&a [*a]',
    '|\n',
    '%YAML 9',
  ],
  seeds: () => [
    Buffer.from(policyText),
    Buffer.from(asDocument('yaml')),
    Buffer.from(asDocument('json')),
    Buffer.from('rules: []\ntimeZone: UTC\n'),
  ],
  run(input) {
    const compiled = new CompiledPolicy(parsePolicy(input.toString('utf8'), 'policy', readText), 1)
    const call = { user: '1', ip: '10.1.1.1', act: 'write', level: '5' }
    for (const rule of compiled.rules) if (rule.applies(call)) rule.counterKey(call)
  },
}
