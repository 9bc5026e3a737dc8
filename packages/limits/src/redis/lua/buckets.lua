-- A sliding window in buckets (see buckets.ts). State: the string 'newest:count,count,…', the newest bucket first.
-- Parameters: limit, window in ms, buckets, span (how many of the newest buckets count).
algorithms.buckets = {
  parameters = 4,
  keepsStrings = true,
  open = function(s, p, value)
    s.limit, s.window, s.buckets, s.span, s.used, s.dirty = p[1], p[2], p[3], p[4], 0, false
    s.bucket = floor(now * s.buckets / s.window)
    s.counts = {}
    for age = 1, s.span do s.counts[age] = 0 end
    if value then
      local newest, list = string.match(value, '^(%d+):(.*)$')
      newest = tonumber(newest)
      if newest > s.bucket then
        -- The clock stepped back: see #settle of buckets.ts.
        local latest = newest - s.bucket > s.buckets and s.bucket or min(newest, s.bucket + s.buckets + 1 - s.span)
        s.bucket, s.dirty = latest, latest < newest
      end
      local age = s.bucket - newest
      for count in string.gmatch(list, '%d+') do
        age = age + 1
        if age > s.span then break end
        local at = max(1, age)
        s.counts[at] = s.counts[at] + count
        s.used = s.used + count
      end
    end
  end,
  -- The time until a bucket of a given age (1 is the newest) no longer counts.
  forgotten = function(s, age) return ceil((s.bucket - age + 1 + s.span) * s.window / s.buckets) - now end,
  fit = function(s, cost) return floor((s.limit - s.used) / cost) end,
  charge = function(s, units)
    s.counts[1] = s.counts[1] + units
    s.used = s.used + units
    s.dirty = true
  end,
  refund = function(s, units)
    for age = 1, s.span do
      local back = min(units, s.counts[age])
      s.counts[age] = s.counts[age] - back
      s.used = s.used - back
      units = units - back
    end
    s.dirty = true
  end,
  level = function(s) return s.used end,
  reset = function(s)
    for age = 1, s.span do
      if s.counts[age] > 0 then return algorithms.buckets.forgotten(s, age) end
    end
    return 0
  end,
  retry = function(s, cost)
    if cost > s.limit then return -1 end
    local excess, age = s.used + cost - s.limit, s.span + 1
    while excess > 0 do
      age = age - 1
      excess = excess - s.counts[age]
    end
    return algorithms.buckets.forgotten(s, age)
  end,
  save = function(s)
    if not s.dirty then return end
    local parts, last = {}, 0
    for age = 1, s.span do
      parts[age] = format('%.0f', s.counts[age])
      if s.counts[age] > 0 then last = age end
    end
    local value = format('%.0f:%s', s.bucket, table.concat(parts, ',', 1, max(last, 1)))
    keep(s, value, algorithms.buckets.reset(s))
  end,
}
