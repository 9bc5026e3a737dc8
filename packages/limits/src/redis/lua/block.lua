-- Denies a key for a time, or ends that.
--
-- KEYS  the state, or the key of the block alone where the algorithm does not keep strings
-- ARGV  [1], [2] the time (see time.lua); [3] for how many ms, 0 to end it
-- Returns { now, 1 }, or { now } where it may not run now.
local s = { key = KEYS[1] }
local state = takeBlock(s, call('GET', s.key))
local stateMs = state and max(0, call('PTTL', s.key) - grace) or 0
s.blocked = tonumber(ARGV[3])
s.block = packBlock(now + s.blocked, s.blocked)
keep(s, state or '', stateMs)
return { now, 1 }
