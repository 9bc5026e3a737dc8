-- Decides on one call by the counters of the rules that apply to it, and counts the call, in one step.
--
-- KEYS  the counter of each rule, in the order of the rules; for `back` one counter, and the mark of the request
-- ARGV  [1], [2] the time (see time.lua); [3] look: only reports; add: counts on all; through: counts on all unless the
--       call is denied; back: takes entries back; [4] how many counters decide, the first ones; [5] 1 if the call is
--       denied when none of those is over; [6] to [8] three boundaries of calendar days; [9] list or zset, for leak;
--       then for each counter: method, time in ms (0 a calendar day), count, base, 1 if it denies when over,
--       1 if it decides (a shadow rule does not); for `back` then the number of entries and how long the mark stays
-- Returns { now, 1 if counted, then for each counter: 1 if over, used, used in the day }, or { now } alone if
--       the caller does not know the days or its call came too late.
--
-- States: count is the doubles end, count; base the doubles end of day, count of day, end, count; leak a list of times,
-- newest first, or a sorted set of them.
local mode = ARGV[3]
local dayEnd = now < tonumber(ARGV[7]) and tonumber(ARGV[7]) or tonumber(ARGV[8])
if now < tonumber(ARGV[6]) or now >= tonumber(ARGV[8]) then return { now } end
local dayMs = dayEnd - (now < tonumber(ARGV[7]) and tonumber(ARGV[6]) or tonumber(ARGV[7]))
local isList = ARGV[9] == 'list'

local function windowEnd(c) return c.time == 0 and dayEnd or now + c.time end

-- Continues a window that has not ended. If it ends later than its length from now, the clock stepped back.
local function useWindow(c, stop, used)
  if now >= stop or used == 0 then return end
  c.used, c.stop = used, absorbedEnd(stop, c.time == 0 and dayMs or c.time)
  c.isMoved = c.stop < stop
end

local methods = {}

-- A window that starts at the first call.
methods.count = {
  open = function(c)
    c.used, c.stop = 0, windowEnd(c)
    local value = call('GET', c.key)
    if value then
      useWindow(c, unpackNumbers('>dd', value))
    end
  end,
  add = function(c, units)
    c.used = max(0, c.used + units)
    keep(c, pack('>dd', c.stop, c.used), c.used > 0 and c.stop - now or 0)
  end,
  isOver = function(c) return c.used >= c.count end,
}

methods.base = {
  open = function(c)
    c.day, c.dayStop, c.used, c.stop = 0, dayEnd, 0, windowEnd(c)
    local value = call('GET', c.key)
    if value then
      local dayStop, day, stop, used = unpackNumbers('>dddd', value)
      useWindow(c, stop, used)
      if now < dayStop and day > 0 then
        c.day, c.dayStop = day, absorbedEnd(dayStop, dayMs)
        c.isMoved = c.isMoved or c.dayStop < dayStop
      end
    end
    -- Calls above the base of a day count for that day, even while the clock is back in the day before.
    if c.time == 0 and c.used == 0 then c.stop = c.dayStop end
  end,
  add = function(c, units)
    if units < 0 or c.day >= c.base then c.used = max(0, c.used + units) end
    c.day = max(0, c.day + units)
    local forMs = max(c.day > 0 and c.dayStop - now or 0, c.used > 0 and c.stop - now or 0)
    keep(c, pack('>dddd', c.dayStop, c.day, c.stop, c.used), forMs)
  end,
  isOver = function(c) return c.day >= c.base and c.used >= c.count end,
}

methods.leak = {
  open = function(c)
    local key, oldest = c.key, now - c.time
    c.at = now
    if isList then
      local newest = call('LINDEX', key, 0)
      if newest and tonumber(newest) > now then
        c.at = absorbedEnd(newest + c.time, c.time) - c.time
        local index = 0
        while true do
          local at = call('LINDEX', key, index)
          if not at or tonumber(at) <= c.at then break end
          call('LSET', key, index, format('%.0f', c.at))
          index = index + 1
        end
      end
      while true do
        local at = call('LINDEX', key, -1)
        if not at or tonumber(at) > oldest then break end
        call('RPOP', key)
      end
      c.used = call('LLEN', key)
    else
      local newest = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
      if newest and tonumber(newest) > now then
        c.at = absorbedEnd(newest + c.time, c.time) - c.time
        for _, member in ipairs(call('ZRANGEBYSCORE', key, format('(%.0f', c.at), '+inf')) do
          call('ZADD', key, c.at, member)
        end
      end
      call('ZREMRANGEBYSCORE', key, '-inf', oldest)
      c.used = call('ZCARD', key)
    end
  end,
  add = function(c, units)
    if units < 0 then
      if isList then call('LTRIM', c.key, -units, -1) else call('ZREMRANGEBYRANK', c.key, units, -1) end
      c.used = max(0, c.used + units)
      return
    end
    if isList then
      call('LPUSH', c.key, format('%.0f', c.at))
      -- Entries beyond the count only matter because some may be taken back.
      call('LTRIM', c.key, 0, c.count + 999)
    else
      local place = c.used
      while call('ZADD', c.key, 'NX', c.at, format('%.0f:%.0f', c.at, place)) == 0 do place = place + 1 end
      call('ZREMRANGEBYRANK', c.key, 0, -(c.count + 1001))
    end
    call('PEXPIRE', c.key, c.time + grace)
    c.used = c.used + 1
  end,
  isOver = function(c) return c.used >= c.count end,
}

local counters = {}
local position = 10
local count = mode == 'back' and 1 or #KEYS
local isDenied = ARGV[5] == '1'
local isDecided = false
for index = 1, count do
  local c = { key = KEYS[index], blocked = 0, method = methods[ARGV[position]] }
  c.time, c.count, c.base = tonumber(ARGV[position + 1]), tonumber(ARGV[position + 2]), tonumber(ARGV[position + 3])
  -- For a leak, a calendar day is 24 hours: it has no boundary.
  if ARGV[position] == 'leak' and c.time == 0 then c.time = 86400000 end
  c.method.open(c)
  if c.isMoved then c.method.add(c, 0) end
  c.over = c.count > 0 and c.method.isOver(c)
  if c.over and not isDecided and index <= tonumber(ARGV[4]) and ARGV[position + 5] == '1' then
    isDecided, isDenied = true, ARGV[position + 4] == '1'
  end
  position = position + 6
  counters[index] = c
end

local isCounted = mode == 'add' or (mode == 'through' and not isDenied)
if mode == 'back' then
  isCounted = not KEYS[2] or call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[position + 1])
  if isCounted then counters[1].method.add(counters[1], -tonumber(ARGV[position])) end
end
local reply = { now, isCounted and 1 or 0 }
for _, c in ipairs(counters) do
  if isCounted and mode ~= 'back' and c.count > 0 then c.method.add(c, 1) end
  reply[#reply + 1] = c.over and 1 or 0
  reply[#reply + 1] = c.used
  reply[#reply + 1] = c.day or 0
end
return reply
