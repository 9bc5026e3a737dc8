// `@firebreak/core/heat`: counting accesses and measuring heat.
export { Dict, type DictOptions, maxPreload } from '../dict/dict.ts'
export { hashBytes } from '../dict/hash-bytes.ts'
export { maxKeyBytes } from '../dict/key-arena.ts'
export { AccessCounter, type AccessCounterOptions } from './access-counter.ts'
export type { AccessDrain, DrainVisitor } from './access-drain.ts'
export { ByteAccessCounter } from './byte-access-counter.ts'
export { HeatWindow, type HeatWindowOptions } from './heat-window.ts'
export type { KeyBatch } from './key-batch.ts'
export { KeyHasher } from './key-hasher.ts'
export { KeyTally } from './key-tally.ts'
export type { TallyVisitor } from './tally-visitor.ts'
export {
  hotSamplingFactor,
  maxSamplingFactor,
  nextSamplingFactor,
  type SampledLevel,
  type SamplingLoad,
  ThresholdSampler,
} from './threshold-sampling.ts'
export { type WindowRules, windowSlices } from './window-rules.ts'
