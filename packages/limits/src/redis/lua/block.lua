-- Blocks a key for a time, or unblocks it.
--
-- KEYS  the state, or only the key of the block if the algorithm does not keep strings
-- ARGV  [1], [2] the time (see time.lua); [3] for how many ms, 0 to end it
-- Returns { now, 1 }, or { now } if it may not run now.
local key, forMs = KEYS[1], tonumber(ARGV[3])
local state = takeBlock({}, key, call('GET', key))
local block = forMs > 0 and packBlock(now + forMs, forMs) or ''
if state then
  -- The state keeps its meaning and its expiry.
  call('SET', key, block .. state, 'PX', max(call('PTTL', key), forMs + grace))
elseif forMs > 0 then
  call('SET', key, block, 'PX', forMs + grace)
else
  call('DEL', key)
end
return { now, 1 }
