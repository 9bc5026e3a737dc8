-- Denies a key for a time, or ends that.
--
-- KEYS  the block
-- ARGV  [1], [2] the time (see time.lua); [3] for how many ms, 0 to end it
-- Returns { now, 1 }, or { now } where it may not run now.
local forMs = tonumber(ARGV[3])
keep(KEYS[1], whole(now + forMs) .. ':' .. whole(forMs), forMs)
return { now, 1 }
