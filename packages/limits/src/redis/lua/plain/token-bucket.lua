-- A token bucket: bursts of up to CAPACITY, REFILL tokens every PER_MS, full at first. On Redis' own clock.
--
--   redis-cli --eval token-bucket.lua KEY , CAPACITY REFILL PER_MS COST
--
-- KEYS 1 the bucket
-- ARGV 1 CAPACITY, 2 REFILL, 3 PER_MS, all whole numbers above 0; 4 COST, a whole number of 0 or more (1 unless given;
--      0 only reports the state)
-- Returns { 1 admitted or 0 denied, tokens left, ms until this call would be admitted (-1 never), ms until full }.
--
-- A denied call takes nothing. The key is a hash with `at` (ms of Redis' clock) and `debt` (what is missing from full, in
-- 1/PER_MS tokens); it expires when the bucket is full. A clock that steps back refills nothing until it has caught up.
local names, field = 'CAPACITY REFILL PER_MS COST', 'debt'
local function shown(debt, full, per) return math.floor((full - debt) / per) end
