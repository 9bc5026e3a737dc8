-- A log of every admitted call with its time (see log.ts).
-- State: a sorted set; the score is the time, the member 'total:cost' with the running total of all costs, padded so
-- that members with the same time sort by it. The usage is then the difference of two members, whatever the costs are.
-- Parameters: limit, window in ms.
local function readLog(s)
  s.used, s.total, s.base, s.lastAt = 0, 0, 0, 0
  local last = call('ZRANGE', s.key, -1, -1, 'WITHSCORES')
  if #last == 0 then return end
  local first = call('ZRANGE', s.key, 0, 0)[1]
  s.total = tonumber(sub(last[1], 1, 16))
  s.base = tonumber(sub(first, 1, 16)) - tonumber(sub(first, 18))
  s.used, s.lastAt = s.total - s.base, tonumber(last[2])
end

algorithms.log = {
  parameters = 2,
  open = function(s, p)
    local key = s.key
    s.limit, s.window = p[1], p[2]
    s.dirty = false
    local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if last and tonumber(last) > now then
      local latest = absorbedEnd(last + s.window, s.window) - s.window
      for _, member in ipairs(call('ZRANGEBYSCORE', key, format('(%.0f', latest), '+inf')) do
        call('ZADD', key, latest, member)
        s.dirty = true
      end
    end
    call('ZREMRANGEBYSCORE', key, '-inf', now - s.window)
    readLog(s)
  end,
  fit = function(s, cost) return floor((s.limit - s.used) / cost) end,
  charge = function(s, units)
    s.total, s.used, s.lastAt = s.total + units, s.used + units, max(now, s.lastAt)
    call('ZADD', s.key, s.lastAt, format('%016.0f:%.0f', s.total, units))
    s.dirty = true
  end,
  refund = function(s, units)
    local target = max(s.base, s.total - units)
    while s.total > target do
      local last = call('ZRANGE', s.key, -1, -1, 'WITHSCORES')
      local cost = tonumber(sub(last[1], 18))
      call('ZREM', s.key, last[1])
      local back = min(cost, s.total - target)
      s.total = s.total - back
      if back < cost then
        call('ZADD', s.key, last[2], format('%016.0f:%.0f', s.total, cost - back))
      end
    end
    readLog(s)
    s.dirty = true
  end,
  level = function(s) return s.used end,
  reset = function(s) return s.used > 0 and s.lastAt + s.window - now or 0 end,
  retry = function(s, cost)
    if cost > s.limit then return -1 end
    -- The oldest entry whose end frees enough: binary search by rank.
    local wanted = s.base + s.used + cost - s.limit
    local low, high = 0, call('ZCARD', s.key) - 1
    while low < high do
      local middle = floor((low + high) / 2)
      local member = call('ZRANGE', s.key, middle, middle)[1]
      if tonumber(sub(member, 1, 16)) >= wanted then high = middle else low = middle + 1 end
    end
    return tonumber(call('ZRANGE', s.key, low, low, 'WITHSCORES')[2]) + s.window - now
  end,
  save = function(s)
    if s.dirty and s.used > 0 then
      call('PEXPIRE', s.key, s.lastAt + s.window - now + grace)
    end
  end,
}
