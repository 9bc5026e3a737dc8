-- take.lua with window.lua, for the calls of one turn that all have the same cost. Written out, because the functions and
-- tables of those two take twice as long as the decision itself.
--
-- KEYS  the state of each key
-- ARGV  [1], [2] the time (see time.lua); [3] the algorithm; [4] to [9] its parameters (see window.lua); [10] the cost,
--       1 or more; then for each key the number of calls, or nothing if each has one
-- Returns the same as take.lua.
local args, keys = ARGV, KEYS
local limit, window, cost = args[4] + 0, args[5] + 0, args[10] + 0
local newStop
if window == 0 then
  local firstEnd, secondEnd = args[8] + 0, args[9] + 0
  if now < args[7] + 0 or now >= secondEnd then return { now } end
  newStop = now < firstEnd and firstEnd or secondEnd
  window = newStop - (now < firstEnd and args[7] or firstEnd)
elseif args[6] == '1' then
  newStop = now + window
else
  newStop = now - now % window + window
end
local values = call('MGET', unpack(keys))
local reply = { now }
local size = 1
for index = 1, #keys do
  local key, value, blocked = keys[index], values[index], 0
  if value and byte(value) == 33 then
    local s = {}
    value = takeBlock(s, key, value)
    blocked = s.blocked
  end
  local count, stop, dirty = 0, newStop, false
  if value then
    local oldStop, used = unpackNumbers('>dd', value)
    if now < oldStop then
      count, stop = used, absorbedEnd(oldStop, window)
      dirty = stop < oldStop
    end
  end
  if blocked > 0 then
    reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = 0, -1, blocked, blocked
  else
    local calls = (args[10 + index] or 1) + 0
    local fits = floor((limit - count) / cost)
    if fits > calls then fits = calls end
    if fits > 0 then
      count, dirty = count + fits * cost, true
    else
      fits = 0
    end
    local resetMs, retryMs = count > 0 and stop - now or 0, 0
    if fits < calls then retryMs = cost > limit and -1 or stop - now end
    reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = fits, count, retryMs, resetMs
    if dirty then
      if count > 0 then
        call('SET', key, pack('>dd', stop, count), 'PX', resetMs + grace)
      else
        call('DEL', key)
      end
    end
  end
  size = size + 4
end
return reply
