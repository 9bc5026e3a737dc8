-- The beginning of every script: what time it is.
--
-- ARGV[1]  the time in milliseconds, given by tests only; '' in production: then it is Redis' own
-- ARGV[2]  the latest time at which the call may still run, '' for any: a call that waited in a client's queue while
--          Redis was away has long been answered, and must not be charged when it arrives at last
--
-- Doubles hold whole numbers exactly up to 2^53; `tostring` would keep 14 digits only, so numbers are written by `whole`.

local given = ARGV[1]
local now
if given == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(given)
end

-- Expiry only collects: what a key means is decided by the time in it. So keys stay a little longer than they mean
-- anything, and under a test's clock, which does not move with Redis' own, much longer.
local grace = given == '' and 1000 or 3600000

if ARGV[2] ~= '' and now > tonumber(ARGV[2]) then return { now } end

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function whole(number)
  return string.format('%.0f', number)
end

-- Keeps a string state, or removes it where nothing is left to keep.
local function keep(key, value, forMs)
  if forMs > 0 then
    redis.call('SET', key, value, 'PX', whole(forMs + grace))
  else
    redis.call('DEL', key)
  end
end

-- How much longer a key is blocked. The value is 'until:for'; a clock that stepped back makes no block longer.
local function blockedMs(key)
  local value = redis.call('GET', key)
  if not value then return 0 end
  local untilMs, forMs = string.match(value, '^(%d+):(%d+)$')
  untilMs, forMs = tonumber(untilMs), tonumber(forMs)
  if untilMs - now > forMs then
    untilMs = now + forMs
    redis.call('SET', key, whole(untilMs) .. ':' .. whole(forMs), 'PX', whole(forMs + grace))
  end
  return max(0, untilMs - now)
end

-- Every algorithm is a table of functions over a state `s`:
--   open(key, p, at) reads the state; p are the parameters, the algorithm's own starting at ARGV index `at`
--   fit(s, cost)     how many units are free, in calls of this cost
--   charge(s, units, id), refund(s, units, id)
--   level(s)         what is used, for the answer;  reset(s) and retry(s, cost) in milliseconds
--   save(s)          writes what changed, with its expiry
local algorithms = {}
