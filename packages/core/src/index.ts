export { didYouMean } from './errors/did-you-mean.ts'
export { describeValue, FirebreakError, InvalidOptionError } from './errors/firebreak-error.ts'
export { keySlot, keySlotOfBytes, slotCount } from './slots/key-slot.ts'
export { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers, wallClock } from './time/clock.ts'
