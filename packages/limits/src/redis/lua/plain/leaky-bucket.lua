-- A leaky bucket: each call adds its COST to a bucket that holds CAPACITY and loses LEAK every PER_MS; a call that would
-- overflow it is denied. Empty at first. On Redis' own clock.
--
--   redis-cli --eval leaky-bucket.lua KEY , CAPACITY LEAK PER_MS COST
--
-- KEYS 1 the bucket
-- ARGV 1 CAPACITY, 2 LEAK, 3 PER_MS, all whole numbers above 0; 4 COST, a whole number of 0 or more (1 unless given; 0
--      only reports the state)
-- Returns { 1 admitted or 0 denied, what is in the bucket (rounded up), ms until this call would be admitted (-1 never),
--      ms until empty }.
--
-- A denied call adds nothing. The key is a hash with `at` (ms of Redis' clock) and `level` (in 1/PER_MS units); it
-- expires when the bucket is empty. A clock that steps back leaks nothing until it has caught up.
local names, field = 'CAPACITY LEAK PER_MS COST', 'level'
local function shown(level, _, per) return math.ceil(level / per) end
