-- The beginning of every script: the current time.
--
-- ARGV[1]  the time in milliseconds, only given by tests; '' in production: Redis' own clock
-- ARGV[2]  the latest time at which the call may still run, '' for any: a call that waited in a client's queue while
--          Redis was unreachable was answered long ago, and must not be charged when it finally arrives
--
-- Numbers are integers of at most 2^53, which doubles hold exactly. `tostring` and `..` would keep only 14 digits, so states
-- are packed as doubles; numbers passed to `redis.call` keep 17 digits.

local call, byte = redis.call, string.byte
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpackNumbers = struct.pack, struct.unpack

local given = ARGV[1]
local now
if given == '' then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
else
  now = tonumber(given)
end

-- Expiry only cleans up: the time stored in a key decides what it means. So keys stay a little longer than they are needed,
-- and much longer in tests, whose clock does not advance with Redis' own.
local grace = given == '' and 1000 or 3600000

if ARGV[2] ~= '' and now > tonumber(ARGV[2]) then return { now } end
