-- take.lua with drain.lua, for the calls of one turn that all have the same cost. Written out, because the functions and
-- tables of those two take twice as long as the decision itself.
--
-- KEYS  the state of each key
-- ARGV  [1], [2] the time (see time.lua); [3] the algorithm; [4] to [6] capacity, unit, rate; [7] the cost, 1 or more;
--       then for each key the number of calls, or nothing if each has one
-- Returns the same as take.lua.
local args, keys = ARGV, KEYS
local capacity, rate, cost = args[4] + 0, args[6] + 0, args[5] * args[7]
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
  local debt, from, dirty = 0, now, false
  if value then
    local at, owed = unpackNumbers('>dd', value)
    if now < at then
      from = now + absorbedDrain(at - now, owed, capacity, args[5] + 0, rate)
      debt, dirty = owed, from < at
    else
      debt = owed - (now - at) * rate
      if debt < 0 then debt = 0 end
    end
  end
  if blocked > 0 then
    reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = 0, -1, blocked, blocked
  else
    local calls = (args[7 + index] or 1) + 0
    local fits = floor((capacity - debt) / cost)
    if fits > calls then fits = calls end
    if fits > 0 then
      debt, dirty = debt + fits * cost, true
    else
      fits = 0
    end
    local resetMs, retryMs = debt > 0 and from - now + ceil(debt / rate) or 0, 0
    if fits < calls then retryMs = cost > capacity and -1 or from - now + ceil((debt + cost - capacity) / rate) end
    reply[size + 1], reply[size + 2], reply[size + 3], reply[size + 4] = fits, debt, retryMs, resetMs
    if dirty then
      if resetMs > 0 then
        call('SET', key, pack('>dd', from, debt), 'PX', resetMs + grace)
      else
        call('DEL', key)
      end
    end
  end
  size = size + 4
end
return reply
